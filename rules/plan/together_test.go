package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

const together = `"strategy":{"type":"allAtOnce"}`

func TestPlansOfAllAtOnceAreReadStrictly(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"the least":            {`{"all":true,` + together + `}`, ""},
		"a stage":              {`{"all":true,` + together + `,"stage":"Drain"}`, ""},
		"tiers":                {`{"all":true,` + together + `,"drainPlan":{"tiers":[{"podPriority":1}],"include":[]}}`, ""},
		"the KEP's form":       {`{"all":true,` + together + `,"drainPlan":[{"podPriority":1,"podType":"Default","podSelector":{"matchLabels":{"a":"b"}}}]}`, ""},
		"its own requestor":    {`{"all":true,` + together + `,"requestor":"plans"}`, ""},
		"what they share":      {`{"all":true,` + together + `,"reason":"r","maintenance":{"readyTimeout":"4h","drain":{"force":true,"escalation":[{"after":"2h","do":"kill"}]}}}`, ""},
		"another requestor":    {`{"all":true,` + together + `,"requestor":"ops"}`, `requestor: "ops": a node has one maintenance`},
		"another stage":        {`{"all":true,` + together + `,"stage":"drain"}`, `stage: "drain" is not one of Idle, Cordon, Drain`},
		"a duplicate":          {`{"all":true,` + together + `,"drainPlan":[{"podPriority":1},{"podPriority":1,"podType":"Default"}]}`, "drainPlan.tiers[1]: the same entry as tiers[0]"},
		"no pods":              {`{"all":true,` + together + `,"drainPlan":{"include":[]}}`, "drainPlan: has no tiers"},
		"no priority":          {`{"all":true,` + together + `,"drainPlan":[{"podType":"Static"}]}`, "drainPlan[0].podPriority: required"},
		"another type of pods": {`{"all":true,` + together + `,"drainPlan":[{"podPriority":1,"podType":"Job"}]}`, `drainPlan.tiers[0].podType: unknown pod type "Job"`},
		"a bad selector":       {`{"all":true,` + together + `,"drainPlan":[{"podPriority":1,"podSelector":"a in"}]}`, "drainPlan.tiers[0].podSelector: "},
		"a null":               {`{"all":true,` + together + `,"drainPlan":[{"podPriority":null}]}`, "drainPlan[0].podPriority: null is not a value"},
		"another static":       {`{"all":true,` + together + `,"drainPlan":{"static":"kill"}}`, `drainPlan.static: "kill": static pods are told of and not waited for`},
		"a typo":               {`{"all":true,` + together + `,"drainPlan":{"teirs":[]}}`, "drainPlan.teirs: unknown field"},
		"too many tiers":       {`{"all":true,` + together + `,"drainPlan":[` + manyTiers(90) + `]}`, "drainPlan: has 102 tiers: at most 100"},
		"a long selector":      {`{"all":true,` + together + `,"drainPlan":[{"podPriority":1,"podSelector":"a in (` + manyValues(4000) + `)"}]}`, "drainPlan: has "},
		"a canary":             {`{"all":true,"strategy":{"type":"allAtOnce","canary":{"nodes":1}}}`, "strategy.canary: is of strategy rolling"},
		"a pace":               {`{"all":true,"strategy":{"type":"allAtOnce","maxParallel":2}}`, "strategy.maxParallel: is of strategy rolling"},
		"a limit of failures":  {`{"all":true,"strategy":{"type":"allAtOnce","maxFailures":0}}`, "strategy.maxFailures: is of strategy rolling"},
		"an order":             {`{"all":true,"strategy":{"type":"allAtOnce","order":"zone"}}`, "strategy.order: is of strategy rolling"},
		"what is blocked":      {`{"all":true,"strategy":{"type":"allAtOnce","onBlocked":"wait"}}`, "strategy.onBlocked: is of strategy rolling"},
		"tiers twice":          {`{"all":true,` + together + `,"maintenance":{"drain":{"plan":{}}}}`, "maintenance.drain.plan: the tiers of a maintenance that plans share"},
		"work":                 {`{"all":true,` + together + `,"maintenance":{"work":"reboot"}}`, "maintenance.work: its end would end"},
		"no cordon":            {`{"all":true,` + together + `,"maintenance":{"cordon":false}}`, "maintenance.cordon: false: plans that share"},
		"given back":           {`{"all":true,` + together + `,"maintenance":{"drain":{"escalation":[{"after":"1h","do":"giveBack"}]}}}`, "maintenance.drain.escalation[0].do: giveBack: what plans drain together"},
		"waits for pods":       {`{"all":true,` + together + `,"maintenance":{"waitForPodCompletion":{"podSelector":"app=x"}}}`, "maintenance.waitForPodCompletion: "},
		"hook after a drain":   {`{"all":true,` + together + `,"maintenance":{"hooks":{"afterDrain":["detach"]}}}`, "maintenance.hooks.afterDrain: "},
		"given back by SLA":    {`{"all":true,` + together + `,"maintenance":{"sla":{"after":"1h","do":"giveBack"}}}`, "maintenance.sla.do: giveBack: what plans drain together"},
		"the last stage":       {`{"all":true,"stage":"Complete",` + together + `}`, "stage: Complete gives back what a plan holds, and one that begins holds nothing: begin with Idle, Cordon, Drain"},
		"a stage of rolling":   {`{"all":true,"stage":"Idle"}`, "stage: is of strategy allAtOnce"},
		"tiers of rolling":     {`{"all":true,"drainPlan":[]}`, "drainPlan: is of strategy allAtOnce: write the tiers into maintenance.drain.plan"},
		"another strategy":     {`{"all":true,"strategy":{"type":"atOnce"}}`, `strategy.type: "atOnce" is not one of rolling, allAtOnce`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Decode("kernel", []byte(c.input))
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains("\n"+err.Error(), "\n"+c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case c.want == "":
				again, err := json.Marshal(p)
				if err == nil {
					_, err = plan.Decode("kernel", again)
				}
				if err != nil {
					t.Errorf("%s with its defaults is refused: %v", again, err)
				}
			}
		})
	}
}

func decoded(t *testing.T, input string) plan.Plan {
	t.Helper()
	p, err := plan.Decode("kernel", []byte(input))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTheStandardEntriesAreInjected: "the NodeMaintenance .spec.drainPlan always contains the following entries".
func TestTheStandardEntriesAreInjected(t *testing.T) {
	p := decoded(t, `{"all":true,`+together+`,"drainPlan":{"tiers":[{"podType":"Static","podPriority":5},{"podPriority":7,"podSelector":"a=b"},{"podPriority":2000000000}]}}`)
	if p.Stage != plan.Idle || p.Requestor != spec.PlansRequestor {
		t.Errorf("stage %s, requestor %s", p.Stage, p.Requestor)
	}
	tiers, err := p.Tiers()
	if err != nil {
		t.Fatal(err)
	}
	const given = 2 // the third is a standard one
	if want := 12 + given; tiers.Len() != want {
		t.Errorf("%d tiers, want %d", tiers.Len(), want)
	}
	if first := tiers.Entry(0); first != (drainplan.Entry{PodType: drainplan.Default, PodPriority: 7, PodSelector: "a=b"}) {
		t.Errorf("the first is %+v", first)
	}
	if types := decoded(t, `{"all":true,`+together+`}`).DrainPlan.Include; !slices.Equal(types, drainplan.Types()) {
		t.Errorf("it includes %v", types)
	}
}

func TestWhatNodesOfAPlanShare(t *testing.T) {
	p := decoded(t, `{"all":true,`+together+`,"reason":"firmware","windows":["nights"],"drainPlan":[{"podPriority":7}],"maintenance":{"drain":{"force":true}}}`)
	shared, err := p.SharedInput(noon)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"drain":{"force":true},"readyTimeout":"0s","reason":"firmware","windows":["nights"]}`
	if string(shared) != want {
		t.Errorf("they share %s, want %s", shared, want)
	}
	one, err := p.InputOf("a", noon)
	if err != nil {
		t.Fatal(err)
	}
	m, err := spec.Decode(one, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tiers, err := m.Drain.Tiers(); err != nil || tiers.Len() != 13 {
		t.Errorf("alone it would leave in %d tiers, %v", tiers.Len(), err)
	}
	if m.Node != "a" || m.ReadyTimeout != 0 || !m.Drain.Force {
		t.Errorf("alone it would be %+v", m)
	}
	timed := decoded(t, `{"all":true,`+together+`,"maintenance":{"readyTimeout":"4h","drain":{"escalation":[]}}}`)
	if shared, err = timed.SharedInput(noon); err != nil || string(shared) != `{"drain":{"escalation":[]},"readyTimeout":"4h"}` {
		t.Errorf("they share %s, %v", shared, err)
	}
}

// manyTiers are entries of a plan, and manyValues values of a label.
func manyTiers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"podPriority":%d}`, i)
	}
	return strings.Join(all, ",")
}

func manyValues(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("value", i)
	}
	return strings.Join(all, ",")
}
