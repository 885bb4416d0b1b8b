package preflight_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

// drainOf reads a drain as the workflow would.
func drainOf(t *testing.T, drain string) spec.Drain {
	t.Helper()
	m, err := spec.Decode([]byte(`{"node":"n1","drain":`+drain+`}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m.Drain
}

// factsOf are those of a ready node with some pods.
func factsOf(pods ...preflight.PodFacts) preflight.Facts {
	return preflight.Facts{At: time.Unix(0, 0).UTC(), Node: preflight.Node{Name: "n1", Ready: true}, Pods: pods}
}

func pod(name string, change func(*preflight.PodFacts)) preflight.PodFacts {
	p := preflight.PodFacts{Name: "ns/" + name, Type: drainplan.Default, Selected: true}
	if change != nil {
		change(&p)
	}
	return p
}

func decide(t *testing.T, drain string, facts preflight.Facts) preflight.Report {
	t.Helper()
	report, err := preflight.Decide(drainOf(t, drain), facts)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

const allTypes = `{"plan":{"include":["Default","DaemonSet","Static"]}}`

func TestWhatBecomesOfAPod(t *testing.T) {
	type change = func(*preflight.PodFacts)
	daemon := func(p *preflight.PodFacts) { p.Type = drainplan.DaemonSet }
	static := func(p *preflight.PodFacts) { p.Type = drainplan.Static }
	refused := func(p *preflight.PodFacts) { p.Refusal, p.Message = "NoController", "consent with force" }
	stored := func(p *preflight.PodFacts) { p.Refusal, p.Message = "LocalStorage", "consent with deleteEmptyDir" }
	ending := func(p *preflight.PodFacts) { p.Terminating = true }
	left := func(p *preflight.PodFacts) { p.NotDrained = true }
	for name, c := range map[string]struct {
		drain    string
		change   change
		action   preflight.Action
		reason   string
		problems int
	}{
		"ordinary":                        {`{}`, nil, preflight.Evict, "", 0},
		"finished":                        {`{}`, func(p *preflight.PodFacts) { p.Finished = true }, preflight.Evict, "Finished", 0},
		"not selected":                    {`{}`, func(p *preflight.PodFacts) { p.Selected = false }, preflight.Skip, "NotSelected", 0},
		"not selected and bare":           {`{}`, func(p *preflight.PodFacts) { refused(p); p.Selected = false }, preflight.Skip, "NotSelected", 0},
		"bare":                            {`{}`, refused, preflight.Refuse, "NoController", 1},
		"bare in mode wait":               {`{"mode":"wait"}`, refused, preflight.Wait, "Mode", 0},
		"terminating":                     {`{}`, ending, preflight.Wait, "Terminating", 0},
		"of a DaemonSet":                  {`{}`, daemon, preflight.Skip, "DaemonSet", 0},
		"of a DaemonSet, planned":         {allTypes, daemon, preflight.Delete, "DaemonSet", 0},
		"of a DaemonSet, comes back":      {allTypes, func(p *preflight.PodFacts) { daemon(p); p.Returns = true }, preflight.Skip, "ToleratesMaintenance", 0},
		"of a DaemonSet, with storage":    {allTypes, func(p *preflight.PodFacts) { daemon(p); stored(p) }, preflight.Refuse, "LocalStorage", 1},
		"... which ends":                  {allTypes, func(p *preflight.PodFacts) { daemon(p); stored(p); ending(p) }, preflight.Wait, "Terminating", 0},
		"... which comes back":            {allTypes, func(p *preflight.PodFacts) { daemon(p); stored(p); p.Returns = true }, preflight.Skip, "ToleratesMaintenance", 0},
		"... which is not planned":        {`{}`, func(p *preflight.PodFacts) { daemon(p); stored(p) }, preflight.Skip, "DaemonSet", 0},
		"of a DaemonSet in mode wait":     {`{"mode":"wait"}`, daemon, preflight.Skip, "DaemonSet", 0},
		"... which is planned":            {`{"mode":"wait","plan":{"include":["DaemonSet"]}}`, daemon, preflight.Wait, "Mode", 0},
		"static":                          {`{}`, static, preflight.Skip, "StaticPod", 0},
		"static, planned":                 {allTypes, static, preflight.Skip, "StaticPod", 0},
		"static, waited for":              {`{"plan":{"include":["Static"],"static":"wait"}}`, static, preflight.Wait, "StaticPod", 0},
		"of a namespace that stays":       {`{}`, left, preflight.Skip, "Namespace", 0},
		"... and bare":                    {`{}`, func(p *preflight.PodFacts) { refused(p); left(p) }, preflight.Skip, "Namespace", 0},
		"... and static, waited for":      {`{"plan":{"include":["Static"],"static":"wait"}}`, func(p *preflight.PodFacts) { static(p); left(p) }, preflight.Skip, "Namespace", 0},
		"... and of a DaemonSet":          {`{}`, func(p *preflight.PodFacts) { daemon(p); left(p) }, preflight.Skip, "DaemonSet", 0},
		"outside the plan":                {`{"plan":{"include":["DaemonSet"]}}`, nil, preflight.Skip, "NotPlanned", 0},
		"mode none":                       {`{"mode":"none"}`, refused, preflight.Skip, "Mode", 0},
		"mode external":                   {`{"mode":"external"}`, nil, preflight.Wait, "Mode", 0},
		"ordinary, with all types":        {allTypes, nil, preflight.Evict, "", 0},
		"bare with all types, terminates": {allTypes, func(p *preflight.PodFacts) { refused(p); ending(p) }, preflight.Wait, "Terminating", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := decide(t, c.drain, factsOf(pod("web", c.change)))
			if len(r.Pods) != 1 || r.Pods[0].Action != c.action || r.Pods[0].Reason != c.reason || r.Counts[c.action] != 1 {
				t.Errorf("%+v, want %s (%s)", r.Pods, c.action, c.reason)
			}
			if r.ProblemCount() != c.problems {
				t.Errorf("problems %+v, want %d", r.Problems, c.problems)
			}
		})
	}
}

func TestLeaving(t *testing.T) {
	pods := []preflight.PodFacts{
		pod("web", nil), pod("bare", func(p *preflight.PodFacts) { p.Refusal = "NoController" }), pod("agent", daemonOf),
		pod("ending", func(p *preflight.PodFacts) { p.Terminating = true }), pod("over", func(p *preflight.PodFacts) { p.Finished = true }),
		pod("other", func(p *preflight.PodFacts) { p.Selected = false }),
	}
	for drain, want := range map[string]string{
		`{}`:                                 "[true true false false false false]",
		allTypes:                             "[true true false false false false]",
		`{"mode":"wait"}`:                    "[true true false false false false]",
		`{"mode":"none"}`:                    "[false false false false false false]",
		`{"plan":{"include":["DaemonSet"]}}`: "[false false false false false false]",
	} {
		if got, err := preflight.Leaving(drainOf(t, drain), pods); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s; %v", drain, got, want, err)
		}
	}
}

func TestPodsAreInTheOrderOfTheirTiers(t *testing.T) {
	prio := func(priority int32, podType drainplan.PodType) func(*preflight.PodFacts) {
		return func(p *preflight.PodFacts) { p.Priority, p.Type = priority, podType }
	}
	r := decide(t, allTypes, factsOf(
		pod("static", prio(0, drainplan.Static)), pod("agent", prio(0, drainplan.DaemonSet)),
		pod("critical", prio(2_000_000_000, drainplan.Default)), pod("web", prio(0, drainplan.Default)),
	))
	var order []string
	for _, p := range r.Pods {
		order = append(order, fmt.Sprintf("%d %s", p.Tier, p.Pod))
	}
	if got := strings.Join(order, ", "); got != "1 ns/web, 2 ns/critical, 5 ns/agent, 9 ns/static" {
		t.Error(got)
	}
	if len(r.Tiers) != 12 {
		t.Errorf("%d tiers", len(r.Tiers))
	}
	simple := decide(t, `{}`, factsOf(pod("web", nil), pod("agent", daemonOf)))
	if simple.Tiers != nil || simple.Pods[0].Tier != 1 || simple.Pods[1].Tier != 0 {
		t.Errorf("%+v", simple)
	}
}

func daemonOf(p *preflight.PodFacts) { p.Type = drainplan.DaemonSet }

func TestBudgets(t *testing.T) {
	guarded := func(refuses bool, names ...string) func(*preflight.PodFacts) {
		return func(p *preflight.PodFacts) {
			for _, name := range names {
				p.Budgets = append(p.Budgets, preflight.Asked{Budget: name, Refuses: refuses})
			}
		}
	}
	budget := func(name string, impossible bool) preflight.Budget {
		return preflight.Budget{Budget: name, Impossible: impossible, Message: "numbers"}
	}
	for name, c := range map[string]struct {
		drain    string
		pods     []preflight.PodFacts
		budgets  []preflight.Budget
		problems []preflight.Code
		warnings []preflight.Code
	}{
		"one that allows":  {`{}`, []preflight.PodFacts{pod("a", guarded(false, "b"))}, []preflight.Budget{budget("b", false)}, nil, nil},
		"one that refuses": {`{}`, []preflight.PodFacts{pod("a", guarded(true, "b"))}, []preflight.Budget{budget("b", false)}, nil, []preflight.Code{preflight.BudgetRefuses}},
		"an impossible one": {`{}`, []preflight.PodFacts{pod("a", guarded(true, "b")), pod("c", guarded(true, "b"))},
			[]preflight.Budget{budget("b", true)}, []preflight.Code{preflight.ImpossibleBudget}, nil},
		"an impossible one that lets this pod go": {`{}`, []preflight.PodFacts{pod("a", guarded(false, "b"))}, []preflight.Budget{budget("b", true)}, nil, nil},
		"an impossible one of a pod that is deleted": {allTypes, []preflight.PodFacts{pod("a", func(p *preflight.PodFacts) { daemonOf(p); guarded(true, "b")(p) })},
			[]preflight.Budget{budget("b", true)}, nil, nil},
		"an impossible one of a pod without consent": {`{}`, []preflight.PodFacts{pod("a", func(p *preflight.PodFacts) {
			p.Refusal, p.Message, p.Wish = "NoController", "consent with force", "x=y"
			guarded(true, "b")(p)
		})},
			[]preflight.Budget{budget("b", true)}, []preflight.Code{preflight.MissingConsent, preflight.ImpossibleBudget}, []preflight.Code{preflight.Protected}},
		"several over a DaemonSet's pod without consent": {allTypes, []preflight.PodFacts{pod("a", func(p *preflight.PodFacts) {
			daemonOf(p)
			p.Refusal = "LocalStorage"
			guarded(true, "b", "c")(p)
		})},
			[]preflight.Budget{budget("b", true), budget("c", true)}, []preflight.Code{preflight.MissingConsent}, nil},
		"several over one pod": {`{}`, []preflight.PodFacts{pod("a", guarded(false, "b", "c"))},
			[]preflight.Budget{budget("b", false), budget("c", false)}, []preflight.Code{preflight.OverlappingBudget}, nil},
		"bypassed": {`{"escalation":[{"after":"1h","do":"bypassBudget"}]}`, []preflight.PodFacts{pod("a", guarded(true, "b", "c"))},
			[]preflight.Budget{budget("b", true), budget("c", false)}, nil,
			[]preflight.Code{preflight.OverlappingBudget, preflight.ImpossibleBudget, preflight.BudgetRefuses}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := factsOf(c.pods...)
			facts.Budgets = c.budgets
			r := decide(t, c.drain, facts)
			if got := codes(r.Problems); got != fmt.Sprint(c.problems) {
				t.Errorf("problems %s, want %v", got, c.problems)
			}
			if got := codes(r.Warnings); got != fmt.Sprint(c.warnings) {
				t.Errorf("warnings %s, want %v", got, c.warnings)
			}
		})
	}
}

func codes(findings []preflight.Finding) string {
	var all []preflight.Code
	for _, f := range findings {
		all = append(all, f.Code)
	}
	return fmt.Sprint(all)
}

func TestNodePermissionsAndRoom(t *testing.T) {
	facts := factsOf(pod("shy", func(p *preflight.PodFacts) { p.Wish = "karpenter.sh/do-not-disrupt=true" }))
	facts.Node.Ready = false
	facts.Denied = []preflight.Need{preflight.Needs(drainOf(t, `{}`), false)[4], preflight.Needs(drainOf(t, `{}`), false)[0]}
	facts.Unchecked = []string{"the room could not be looked at"}
	facts.Room = &preflight.Room{Unplaced: []preflight.Unplaced{{Pod: "ns/big", Message: "no room"}, {Pod: "ns/own", Message: "pinned", Bound: true}}}
	r := decide(t, `{}`, facts)
	if got := codes(r.Problems); got != "[MissingPermission NoRoom]" {
		t.Error(got)
	}
	if got := codes(r.Warnings); got != "[NodeNotReady MissingPermission Protected BoundToNode NotChecked]" {
		t.Error(got)
	}
	if text := r.Summary(1); text != "permission: the worker's account may not get nodes in the core API group: grant it with `kubectl apply -f deploy/kubernetes/rbac.yaml`, or the chart's rbac.create: true; and 1 more" {
		t.Error(text)
	}

	r = decide(t, `{}`, preflight.Facts{Node: preflight.Node{Name: "n1", Missing: true, Similar: []string{"n-1"}}})
	if !r.Has(preflight.NodeMissing) || !strings.Contains(r.Summary(3), "n-1") {
		t.Errorf("%+v", r)
	}
}

func TestPodsThatAskNotToBeDisruptedAreNamed(t *testing.T) {
	shy := func(p *preflight.PodFacts) { p.Wish = "karpenter.sh/do-not-disrupt=true" }
	for name, c := range map[string]struct {
		drain string
		pod   preflight.PodFacts
		named bool
	}{
		"to be evicted":                {`{}`, pod("a", shy), true},
		"to be deleted":                {allTypes, pod("a", func(p *preflight.PodFacts) { daemonOf(p); shy(p) }), true},
		"a DaemonSet's that stays":     {`{}`, pod("a", func(p *preflight.PodFacts) { daemonOf(p); shy(p) }), false},
		"finished, which is no matter": {`{}`, pod("a", func(p *preflight.PodFacts) { shy(p); p.Finished = true }), false},
	} {
		r := decide(t, c.drain, factsOf(c.pod))
		if got := codes(r.Warnings); (got == "[Protected]") != c.named || r.ProblemCount() != 0 {
			t.Errorf("%s: warnings %s, problems %v", name, got, r.Problems)
		}
	}
}

func TestNeeds(t *testing.T) {
	const (
		node = "get nodes, list nodes, watch nodes, patch nodes, (create events default)"
		pods = node + ", list pods, watch pods, get daemonsets.apps"
		pdbs = "create pods/eviction, list poddisruptionbudgets.policy, watch poddisruptionbudgets.policy"
		told = "(create events)"
		all  = pods + ", " + pdbs + ", delete pods, " + told
	)
	for name, c := range map[string]struct {
		drain, needs string
		waits        bool
	}{
		"none":        {`{"mode":"none"}`, node, false},
		"none, waits": {`{"mode":"none","waitForVolumeDetach":true}`, pods, true},
		"waits too":   {`{}`, pods + ", " + pdbs + ", " + told, true},
		"external":    {`{"mode":"external"}`, node, false},
		"wait":        {`{"mode":"wait","via":"evictionRequest"}`, pods, false},
		"evict":       {`{}`, pods + ", " + pdbs + ", " + told, false},
		"bypass":      {`{"escalation":[{"after":"1h","do":"bypassBudget"}]}`, all, false},
		"kill":        {`{"escalation":[{"after":"1h","do":"kill"}]}`, all, false},
		"daemon sets": {`{"plan":{"include":["DaemonSet"]}}`, all, false},
		"volumes": {`{"mode":"wait","waitForVolumeDetach":true}`,
			pods + ", list volumeattachments.storage.k8s.io, watch volumeattachments.storage.k8s.io, get persistentvolumeclaims", false},
		"requests": {`{"via":"evictionRequest"}`, pods + ", " + pdbs + ", " +
			"list evictionrequests.lifecycle.k8s.io, watch evictionrequests.lifecycle.k8s.io, create evictionrequests.lifecycle.k8s.io, " +
			"patch evictionrequests.lifecycle.k8s.io, delete evictionrequests.lifecycle.k8s.io, " +
			"list evictions.lifecycle.k8s.io, watch evictions.lifecycle.k8s.io, " + told, false},
	} {
		var got []string
		for _, n := range preflight.Needs(drainOf(t, c.drain), c.waits) {
			got = append(got, short(n))
		}
		if diff := cmp.Diff(strings.Split(c.needs, ", "), got); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
}

// short is a permission in kubectl's words, in brackets where a drain can do without.
func short(n preflight.Need) string {
	text := n.Verb + " " + n.Resource
	if n.Subresource != "" {
		text += "/" + n.Subresource
	}
	if n.Group != "" {
		text += "." + n.Group
	}
	if n.Namespace != "" {
		text += " " + n.Namespace
	}
	if n.Optional {
		return "(" + text + ")"
	}
	return text
}

func TestANeedSaysItsNamespace(t *testing.T) {
	var texts []string
	for _, n := range preflight.Needs(drainOf(t, `{}`), false) {
		if n.Optional {
			texts = append(texts, n.String())
		}
	}
	want := "create events in the core API group (namespace default); create events in the core API group"
	if got := strings.Join(texts, "; "); got != want {
		t.Error(got)
	}
}

func TestAReportOfACrowdedNodeFitsInAPayload(t *testing.T) {
	long := strings.Repeat("x", 253)
	facts := factsOf()
	facts.Room = &preflight.Room{}
	for i := range 3000 {
		name := fmt.Sprintf("%s-%d", long, i)
		facts.Pods = append(facts.Pods, pod(name, func(p *preflight.PodFacts) {
			p.Refusal, p.Message, p.Wish = "LocalStorage", strings.Repeat("y", 5000), "wish"
			if i%2 == 0 {
				p.Refusal, p.Budgets = "", []preflight.Asked{{Budget: name, Refuses: true}}
			}
		}))
		facts.Budgets = append(facts.Budgets, preflight.Budget{Budget: name, Message: strings.Repeat("é", 5000)})
		facts.Room.Unplaced = append(facts.Room.Unplaced, preflight.Unplaced{Pod: name, Message: strings.Repeat("z", 5000)})
	}
	r := decide(t, `{}`, facts)
	text, err := json.Marshal(r)
	if err != nil || len(text) > 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if len(r.Pods)+r.MorePods != 3000 || r.ProblemCount() != 4500 || r.Counts[preflight.Refuse] != 1500 {
		t.Errorf("%d pods and %d more, %d problems", len(r.Pods), r.MorePods, r.ProblemCount())
	}
}

func TestAPreflightKnowsWhatTheSLADoes(t *testing.T) {
	for name, c := range map[string]struct {
		sla, problems, warns, would string
	}{
		"tells":            {`{"after":"30m"}`, "[ImpossibleBudget]", "", "after 30m the SLA is over, after 2h fail"},
		"bypasses budgets": {`{"after":"30m","do":"bypassBudget"}`, "[]", "(or the SLA does bypassBudget after 30m)", "after 30m the SLA is over, after 30m bypassBudget, after 2h fail"},
		"kills":            {`{"after":"1h","do":"kill"}`, "[]", "(or the SLA does kill after 1h)", "after 1h the SLA is over, after 1h kill, after 2h fail"},
		"gives back":       {`{"after":"30m","do":"giveBack"}`, "[ImpossibleBudget]", "", "after 30m the SLA is over, after 30m giveBack"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := spec.Decode([]byte(`{"node":"n1","sla":`+c.sla+`,"drain":{"escalation":[{"after":"2h","do":"fail"}]}}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			facts := factsOf(pod("db", func(p *preflight.PodFacts) { p.Budgets = []preflight.Asked{{Budget: "ns/db", Refuses: true}} }))
			facts.Budgets = []preflight.Budget{{Budget: "ns/db", Impossible: true, Message: "never allows one"}}
			r, err := preflight.Decide(m.Judged(), facts)
			if err != nil || codes(r.Problems) != c.problems || r.Escalates() != c.would {
				t.Errorf("%v: problems %v, it would %q", err, r.Problems, r.Escalates())
			}
			if c.warns != "" && (len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Message, c.warns)) {
				t.Errorf("warnings %v", r.Warnings)
			}
		})
	}
}

func TestWhatTheSLADoesNeedsItsPermission(t *testing.T) {
	for sla, want := range map[string]bool{`{"after":"30m"}`: false, `{"after":"30m","do":"kill"}`: true} {
		m, err := spec.Decode([]byte(`{"node":"n1","sla":`+sla+`}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		deletes := false
		for _, need := range preflight.Needs(m.Judged(), false) {
			deletes = deletes || need.Verb == "delete" && need.Resource == "pods"
		}
		if deletes != want {
			t.Errorf("%s: to delete pods is needed: %v", sla, deletes)
		}
	}
}

func TestAPermissionToDeletePodsIsMissedWhereOneWouldBeDeleted(t *testing.T) {
	const command = "kubectl apply -f deploy/kubernetes/rbac-delete-pods.yaml"
	const tiers = `{"plan":{"tiers":[{"podPriority":1000}],"include":["Default","DaemonSet"]}}`
	daemon := func(p *preflight.PodFacts) { p.Type = drainplan.DaemonSet }
	for name, c := range map[string]struct {
		drain     string
		pod       func(*preflight.PodFacts)
		unchecked []string
		warns     bool
	}{
		"no pod is deleted":            {drain: tiers, warns: true},
		"a DaemonSet's pod is deleted": {drain: tiers, pod: daemon},
		"it is not drained":            {drain: tiers, pod: func(p *preflight.PodFacts) { daemon(p); p.NotDrained = true }, warns: true},
		"it would be, with consent":    {drain: tiers, pod: func(p *preflight.PodFacts) { daemon(p); p.Refusal = "LocalStorage" }},
		"a rung deletes":               {drain: `{"escalation":[{"after":"1h","do":"kill"}]}`},
		"the pods could not be read":   {drain: tiers, unchecked: []string{"pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := factsOf(pod("a", c.pod))
			facts.Unchecked = c.unchecked
			for _, need := range preflight.Needs(drainOf(t, c.drain), false) {
				if need.Verb == "delete" && need.Resource == "pods" {
					facts.Denied = append(facts.Denied, need)
				}
			}
			if len(facts.Denied) != 1 {
				t.Fatalf("denied: %v", facts.Denied)
			}
			r := decide(t, c.drain, facts)
			findings, where := r.Problems, "problems"
			if c.warns {
				findings, where = r.Warnings, "warnings"
			}
			i := slices.IndexFunc(findings, func(f preflight.Finding) bool { return f.Code == preflight.MissingPermission })
			if i < 0 {
				t.Fatalf("not among the %s: problems %v, warnings %v", where, r.Problems, r.Warnings)
			}
			if text := findings[i].Message; !strings.Contains(text, command) || !strings.Contains(text, "delete-pods in the chart's rbac.features") {
				t.Errorf("names no command: %s", text)
			}
		})
	}
}
