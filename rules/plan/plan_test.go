package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

func TestPlansAreReadStrictly(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"the least":               {`{"nodes":["a"]}`, ""},
		"all":                     {`{"all":true}`, ""},
		"a label selector":        {`{"selector":"pool=gpu"}`, ""},
		"a node selector":         {`{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["a"]}]}]}}`, ""},
		"everything":              {`{"selector":"a=b","exclude":["x"],"requestor":"ops","reason":"r","ticket":"t","owner":"o","notify":["oncall"],"strategy":{"maxParallel":"10%","canary":{"nodes":3,"soak":"1h","approval":true},"maxFailures":5,"pauseBetween":"1m","order":"zone","onBlocked":"skip","blockedAfter":"10m","comeBackAfter":"5m","tries":2},"maintenance":{"priority":3,"drain":{"force":true}}}`, ""},
		"no nodes":                {`{}`, "nodes: want exactly one of nodes, selector, nodeSelector and all"},
		"two ways":                {`{"all":true,"selector":"a=b"}`, "nodes: want exactly one"},
		"a bad selector":          {`{"selector":"a in"}`, "selector: "},
		"a selector of nothing":   {`{"nodeSelector":{"nodeSelectorTerms":[]}}`, "nodeSelector.nodeSelectorTerms: is empty"},
		"a bad node selector":     {`{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Like"}]}]}}`, "nodeSelector: "},
		"a node named twice":      {`{"nodes":["a","a"]}`, `nodes[1]: "a" is named twice`},
		"no name":                 {`{"nodes":["A B"]}`, "nodes[0]: "},
		"an unknown field":        {`{"nodes":["a"],"strategy":{"maxParalel":2}}`, "strategy.maxParalel: unknown field"},
		"a word as strategy":      {`{"nodes":["a"],"strategy":"AllAtOnce"}`, `strategy: "AllAtOnce" is not an object: write {type: allAtOnce} or {type: rolling}`},
		"no node at a time":       {`{"nodes":["a"],"strategy":{"maxParallel":0}}`, "strategy.maxParallel: 0 lets no node go"},
		"no amount":               {`{"nodes":["a"],"strategy":{"maxParallel":"two"}}`, "strategy.maxParallel: "},
		"another order":           {`{"nodes":["a"],"strategy":{"order":"random"}}`, `strategy.order: "random" is not one of name, zone, fewestPods`},
		"an empty canary":         {`{"nodes":["a"],"strategy":{"canary":{"nodes":0}}}`, "strategy.canary.nodes: 0 is not from 1"},
		"blocked and waiting":     {`{"nodes":["a"],"strategy":{"blockedAfter":"1m"}}`, "strategy.onBlocked: wait leaves a blocked node"},
		"blocked at once":         {`{"nodes":["a"],"strategy":{"onBlocked":"skip","blockedAfter":"0s"}}`, "strategy.blockedAfter: must be more than 0s"},
		"a maintenance's node":    {`{"nodes":["a"],"maintenance":{"node":"b"}}`, "maintenance.node: is the plan's to say"},
		"a maintenance's field":   {`{"nodes":["a"],"maintenance":{"readyTimeout":"soon"}}`, "maintenance.readyTimeout: "},
		"a maintenance's typo":    {`{"nodes":["a"],"maintenance":{"pririty":1}}`, "maintenance.pririty: unknown field"},
		"two who end a drain":     {`{"nodes":["a"],"strategy":{"onBlocked":"skip"},"maintenance":{"drain":{"escalation":[]}}}`, "maintenance.drain.escalation: onBlocked skip ends a drain"},
		"a requestor that is not": {`{"nodes":["a"],"requestor":"o"}`, "requestor: "},
		"a window's name":         {`{"nodes":["a"],"windows":["x y"]}`, "\x00windows[0]: "},
		"a maintenance's window":  {`{"nodes":["a"],"maintenance":{"windows":["x y"]}}`, "maintenance.windows[0]: "},
		"not JSON":                {`{`, "not valid JSON"},
		"null":                    {`{"nodes":["a"],"reason":null}`, "reason: null is not a value"},
		"too long":                {`{"reason":"` + strings.Repeat("x", plan.MaxInput) + `"}`, "the input has"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plan.Decode("kernel", []byte(c.input))
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains("\x00"+err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestNamesOfPlans(t *testing.T) {
	for name, ok := range map[string]bool{
		"kernel-6.12": true, "a": true, "": false, "Kernel": false, "a/b": false, "-a": false, strings.Repeat("a", 54): false, strings.Repeat("a", 53): true,
	} {
		if err := plan.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if ok && spec.RequestorName(plan.RequestorOf(name)) != nil {
			t.Errorf("%q: %v", name, spec.RequestorName(plan.RequestorOf(name)))
		}
	}
}

func TestTheInputOfAMaintenance(t *testing.T) {
	p, err := plan.Decode("kernel", []byte(`{"nodes":["a"],"reason":"kernel 6.12","owner":"infra","notify":["oncall"],
		"strategy":{"onBlocked":"skip","blockedAfter":"15m"},"maintenance":{"owner":"db","priority":7,"drain":{"force":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	input, err := p.InputOf("a", noon)
	if err != nil {
		t.Fatal(err)
	}
	m, err := spec.Decode(input, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Node != "a" || m.Requestor != "plan-kernel" || m.Reason != "kernel 6.12" || m.Owner != "db" || m.Priority != 7 || !m.Drain.Force || (*m.Notify)[0] != "oncall" {
		t.Errorf("%+v", m)
	}
	if e := m.Drain.Escalation; len(e) != 1 || e[0].Do != spec.Fail || e[0].After.String() != "15m0s" {
		t.Errorf("escalation %+v", e)
	}
}

func TestANotBeforeThatIsOverIsLeftOut(t *testing.T) {
	p, err := plan.Decode("kernel", []byte(`{"nodes":["a"],"maintenance":{"notBefore":"2026-03-01T12:00:00Z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[time.Time]bool{noon.Add(-time.Hour): true, noon: true, noon.Add(time.Second): false} {
		input, err := p.InputOf("a", now)
		if has := strings.Contains(string(input), "notBefore"); err != nil || has != want {
			t.Errorf("at %s: %s, %v", now, input, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"nodes":["a"],"maintenance":{"drain":{"plan":[{"podPriority":1}]}}}`))
	f.Add([]byte(`{"all":true,"strategy":{"onBlocked":"abort"}}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		p, err := plan.Decode("kernel", input)
		if err != nil {
			return
		}
		one, err := p.InputOf("worker-01", noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Decode(one, nil); err != nil {
			t.Errorf("%s: a maintenance of the plan is refused: %v", input, err)
		}
		if again, err := json.Marshal(p); err != nil {
			t.Error(err)
		} else if _, err := plan.Decode("kernel", again); err != nil {
			t.Errorf("%s with its defaults is refused: %v", again, err)
		}
	})
}
