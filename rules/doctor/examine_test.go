package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

const prefix = "node-maintenance/"

func running(attempt int) Execution {
	return Execution{Running: true, Status: "Running", Attempt: attempt}
}

// healthy is a site with one maintenance in each situation, all of them as they should be.
func healthy() Facts {
	granted := noon.Add(-time.Minute)
	f := Facts{
		At: noon, Prefix: prefix, Executions: map[string]Execution{},
		Scheduler: Scheduler{WorkflowID: "drydock-scheduler", Execution: Execution{RunID: "s", Running: true, StartedAt: granted}},
	}
	held := func(name, phase string) {
		run := "run-" + name
		f.Nodes = append(f.Nodes, Node{
			Name: name, Marked: true, Mark: run, Labelled: true, Phase: phase, Tainted: true, Unschedulable: true,
			Holders: []Holder{{WorkflowID: prefix + name + "/ops", RunID: run, Requestor: "ops"}}, Protections: []string{"a", "b"},
		})
		f.Scheduler.Holders = append(f.Scheduler.Holders, Slot{RequestID: run + "/1", Node: name, Requestor: "ops", RunID: run, GrantedAt: granted})
		f.Maintenances = append(f.Maintenances, Maintenance{
			WorkflowID: prefix + name + "/ops", RunID: run, Node: name, Asked: true, Wants: true, RequestID: run + "/1", Granted: &granted,
			Phase: phase, Since: granted,
		})
		f.Executions[run] = running(0)
	}
	for i, phase := range []string{"Cordoning", "WaitingForPods", "Draining", "Ready", "RequestorFailed", "Releasing"} {
		held(fmt.Sprintf("n%d", i+1), phase)
	}
	// One that was granted a moment ago, one that waits, one that backs off, one that has just ended.
	f.Nodes = append(f.Nodes, Node{Name: "n7"}, Node{Name: "n8"}, Node{Name: "n9"}, Node{Name: "n10"}, Node{Name: "hand", Unschedulable: true, Protections: []string{"a"}})
	for _, m := range []Maintenance{
		{Node: "n7", RunID: "run-n7", Wants: true, RequestID: "run-n7/1", Granted: &granted, Phase: "Scheduled"},
		{Node: "n8", RunID: "run-n8", Wants: true, RequestID: "run-n8/1"},
		{Node: "n9", RunID: "run-n9"},
		{Node: "n10", RunID: "run-n10", Ended: true, Wants: true, RequestID: "run-n10/1"},
	} {
		m.Asked, m.WorkflowID = true, prefix+m.Node+"/ops"
		f.Maintenances = append(f.Maintenances, m)
	}
	f.Scheduler.Holders = append(f.Scheduler.Holders, Slot{RequestID: "run-n7/1", Node: "n7", Requestor: "ops", RunID: "run-n7"})
	f.Scheduler.Pending = []Slot{{ID: "run-n8/1", Node: "n8", Requestor: "ops", RunID: "run-n8"}}
	f.Requests = []Requests{{Node: "n3", WorkflowID: prefix + "n3/ops", RunID: "run-n3", Count: 2}}
	return f
}

func (f *Facts) node(name string) *Node {
	return &f.Nodes[slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Name == name })]
}

func (f *Facts) maintenance(node string) *Maintenance {
	return &f.Maintenances[slices.IndexFunc(f.Maintenances, func(m Maintenance) bool { return m.Node == node })]
}

func (f *Facts) dropSlot(node string) {
	f.Scheduler.Holders = slices.DeleteFunc(f.Scheduler.Holders, func(s Slot) bool { return s.Node == node })
}

func (f *Facts) dropNode(name string) {
	f.Nodes = slices.DeleteFunc(f.Nodes, func(n Node) bool { return n.Name == name })
}

// dies ends a run, which visibility may not know yet.
func (f *Facts) dies(run string) { f.Executions[run] = Execution{Status: "Terminated"} }

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	look := Examine(healthy(), nil)
	if len(look.Findings) > 0 {
		t.Errorf("%+v", look.Findings)
	}
	if len(look.Notes) != 1 || look.Notes[0].Kind != CordonByHand || look.Notes[0].Node != "hand" {
		t.Errorf("notes %+v", look.Notes)
	}
	if want := (Looked{Nodes: 11, Marked: 6, Maintenances: 10, Holders: 7, Pending: 1}); look.Looked != want {
		t.Errorf("looked at %+v", look.Looked)
	}
}

func TestWhatIsInconsistentIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Facts)
		// want are "kind node fix" of all findings, in their order.
		want []string
		says string
	}{
		"no scheduler": {func(f *Facts) {
			f.Scheduler = Scheduler{Execution: Execution{Status: "Terminated"}}
		}, []string{"SchedulerMissing  await-scheduler"}, "Terminated"},
		"a scheduler that does not answer": {func(f *Facts) {
			f.Scheduler.Unanswered, f.Scheduler.Attempt = "not ready", 7
		}, []string{"SchedulerUnanswered  "}, "attempt 7"},
		"a scheduler that has just begun": {func(f *Facts) {
			f.Scheduler.Rebuilding, f.Scheduler.Holders, f.Scheduler.Pending = true, nil, nil
		}, nil, ""},
		"a scheduler that stays at its beginning": {func(f *Facts) {
			f.Scheduler.Rebuilding, f.Scheduler.StartedAt = true, noon.Add(-time.Hour)
		}, []string{"SchedulerRebuilding  "}, ""},
		"a dead run's mark and slot": {func(f *Facts) { f.dies("run-n3") },
			[]string{"MarkDead n3 release-mark", "RequestsLeft n3 withdraw-requests", "SlotDead n3 release-slot"}, "Terminated"},
		"a dead run's mark only": {func(f *Facts) {
			f.dies("run-n4")
			f.dropSlot("n4")
		}, []string{"MarkDead n4 release-mark"}, ""},
		"another Drydock's mark": {func(f *Facts) {
			f.node("n8").Marked, f.node("n8").Holders = true, []Holder{{WorkflowID: "east/node-maintenance/n8/ops", RunID: "elsewhere"}}
		}, []string{"MarkForeign n8 "}, "east/"},
		"a mark of another namespace": {func(f *Facts) { f.node("n4").Holders[0].Foreign = true },
			[]string{"MarkForeign n4 "}, "another Temporal namespace"},
		"a mark of another namespace that may be lost": {func(f *Facts) {
			f.node("n4").Holders[0].Foreign, f.node("n4").Holders[0].Namespace = true, "5b1b3f5a"
		}, []string{"MarkForeign n4 "}, "drydock doctor --fix --lost 5b1b3f5a n4"},
		"a mark of which nothing is known": {func(f *Facts) {
			f.Executions["run-n4"] = Execution{Status: "not found", Unknown: true}
			f.dropSlot("n4")
		}, []string{"MarkUnknown n4 "}, "younger than what the namespace keeps"},
		"a mark that nobody can read": {func(f *Facts) {
			n := f.node("n4")
			n.Holders, n.Unreadable = nil, "bad JSON"
		}, []string{"MarkUnreadable n4 "}, "bad JSON"},
		"a request of nobody": {func(f *Facts) {
			f.Scheduler.Pending = append(f.Scheduler.Pending, Slot{ID: "x", Node: "n1", Requestor: "ghost", RunID: "run-ghost"})
		}, []string{"PendingDead n1 release-slot"}, "gone"},
		"a slot of a remediation that does not run": {func(f *Facts) {
			f.Scheduler.Holders = append(f.Scheduler.Holders, Slot{
				RequestID: "run-r/1", Node: "n9", Requestor: "health-cp", RunID: "run-r", Kind: "control-plane", WorkflowID: "node-remediation/cp/n9",
			})
		}, []string{"SlotDead n9 release-slot"}, "a control-plane remediation by health-cp"},
		"a slot of a profile's transition that does not run": {func(f *Facts) {
			f.Scheduler.Holders = append(f.Scheduler.Holders, Slot{
				RequestID: "run-t/1", Node: "n9", Requestor: "profile-flatcar", RunID: "run-t", Kind: "profile", WorkflowID: "profile-transition/flatcar/n9",
			})
		}, []string{"SlotDead n9 release-slot"}, "a profile's transition by profile-flatcar"},
		"a slot of a profile's transition that has just ended": {func(f *Facts) {
			f.Executions["run-t"] = Execution{RunID: "run-t", Status: "Completed", EndedBy: f.At.Add(-time.Minute)}
			f.Scheduler.Holders = append(f.Scheduler.Holders, Slot{
				RequestID: "run-t/1", Node: "n9", Requestor: "profile-flatcar", RunID: "run-t", Kind: "profile", WorkflowID: "profile-transition/flatcar/n9",
			})
		}, nil, ""},
		"a slot that its maintenance has given back": {func(f *Facts) {
			f.Scheduler.Holders = append(f.Scheduler.Holders, Slot{RequestID: "run-n9/1", Node: "n9", Requestor: "ops", RunID: "run-n9"})
		}, []string{"SlotStale n9 release-slot"}, ""},
		"a slot that the scheduler has forgotten": {func(f *Facts) { f.dropSlot("n4") }, []string{"SlotUnknown n4 request-slot"}, ""},
		"a slot that the scheduler knows by another request": {func(f *Facts) { f.Scheduler.Holders[3].RequestID = "x" },
			[]string{"SlotUnknown n4 request-slot"}, ""},
		"a slot that the scheduler cannot grant again now": {func(f *Facts) {
			f.dropSlot("n4")
			f.Scheduler.Pending = append(f.Scheduler.Pending, Slot{ID: "run-n4/1", Node: "n4", Requestor: "ops", RunID: "run-n4"})
		}, []string{"SlotUnknown n4 "}, "limits"},
		"a slot that its maintenance does not know of": {func(f *Facts) { f.maintenance("n7").Granted = nil }, []string{"SlotUntold n7 request-slot"}, ""},
		"a request that the scheduler has forgotten":   {func(f *Facts) { f.Scheduler.Pending = nil }, []string{"SlotUnrequested n8 request-slot"}, ""},
		"a mark that is missing": {func(f *Facts) {
			n := f.node("n4")
			n.Marked, n.Holders = false, nil
		}, []string{"SlotUnmarked n4 restore-mark"}, "Ready"},
		"a mark that is missing while it releases": {func(f *Facts) {
			*f.node("n6") = Node{Name: "n6"}
			f.dropSlot("n6")
		}, nil, ""},
		"conditions of the dead": {func(f *Facts) {
			f.node("n8").Claims = []Holder{{WorkflowID: prefix + "n8/ops", RunID: "run-n8"}, {WorkflowID: prefix + "n8/net", RunID: "gone"}}
			f.Executions["gone"] = Execution{RunID: "gone", Status: "Terminated"}
		}, []string{"ConditionsLeft n8 hide-conditions"}, "does not run (Terminated)"},
		"conditions beside a mark": {func(f *Facts) {
			f.node("n3").Claims = []Holder{{WorkflowID: prefix + "n3/ops", RunID: "run-n3"}, {WorkflowID: prefix + "n3/net", RunID: "gone"}}
			f.Executions["gone"] = Execution{RunID: "gone", Status: "Terminated"}
		}, []string{"ConditionsLeft n3 hide-conditions"}, ""},
		"conditions of others": {func(f *Facts) {
			f.node("n8").Claims = []Holder{
				{WorkflowID: prefix + "n8/net", RunID: "elsewhere", Foreign: true}, {WorkflowID: "east/" + prefix + "n8/net", RunID: "other"},
				{WorkflowID: prefix + "n8/net", RunID: "young"},
			}
			f.Executions["young"] = Execution{RunID: "young", Unknown: true}
		}, nil, ""},
		"a taint left": {func(f *Facts) { f.node("n8").Tainted = true }, []string{"TaintLeft n8 clean-node"}, "the maintenance taint"},
		"a label left": {func(f *Facts) { f.node("n8").Labelled = true }, []string{"LabelLeft n8 clean-node"}, ""},
		"label and cordon left": {func(f *Facts) {
			n := f.node("n8")
			n.Labelled, n.Phase, n.Unschedulable, n.Protections = true, "Ready", true, []string{"a"}
		}, []string{"CordonUnowned n8 "}, "phase=Ready"},
		"label and protections left": {func(f *Facts) {
			n := f.node("n8")
			n.Labelled, n.Protections = true, []string{"a", "b"}
		}, []string{"ProtectionLeft n8 "}, "a and b"},
		"a maintenance that does not answer": {func(f *Facts) {
			m := f.maintenance("n4")
			m.Unanswered = "not ready"
			f.Executions["run-n4"] = running(5)
		}, []string{"MaintenanceUnanswered n4 "}, "attempt 5"},
		"a node that is gone under a drain":  {func(f *Facts) { f.dropNode("n3") }, []string{"NodeGone n3 "}, "Draining"},
		"a node that is gone for a failed":   {func(f *Facts) { f.dropNode("n5") }, []string{"NodeGone n5 "}, ""},
		"a node that is gone before a grant": {func(f *Facts) { f.dropNode("n8") }, []string{"NodeGone n8 "}, ""},
		"a node that is re-created": {func(f *Facts) {
			f.maintenance("n4").AwaitsNode = true
			f.dropNode("n4")
		}, nil, ""},
		"a node that is gone with its releasing maintenance": {func(f *Facts) { f.dropNode("n6") }, nil, ""},
		"a maintenance that was not asked": {func(f *Facts) {
			*f.maintenance("n4") = Maintenance{WorkflowID: prefix + "n4/ops", RunID: "run-n4", Node: "n4"}
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			c.spoil(&f)
			look := Examine(f, nil)
			var got []string
			text := ""
			for _, found := range look.Findings {
				got = append(got, fmt.Sprintf("%s %s %s", found.Kind, found.Node, found.Fix))
				text += found.Text + found.NextStep
				if found.Fix == "" && found.NextStep == "" {
					t.Errorf("%s has neither a fix nor a next step", found.Kind)
				}
				if found.Fix != "" && found.Fix.Does() == "" {
					t.Errorf("nobody knows what %s does", found.Fix)
				}
			}
			if !slices.Equal(got, c.want) || !strings.Contains(text, c.says) {
				t.Errorf("found %q, want %q with %q in %s", got, c.want, c.says, text)
			}
			// The same again is the same, and something else is not.
			if n := len(Confirm(look.Findings, Examine(f, nil).Findings)); n != len(c.want) {
				t.Errorf("%d of %d are confirmed", n, len(c.want))
			}
			if n := len(Confirm(nil, look.Findings)); n > 0 {
				t.Error("what one look did not find is confirmed")
			}
		})
	}
}

func TestARestrictionKeepsWhatConcernsAll(t *testing.T) {
	f := healthy()
	f.Scheduler.Unanswered = "no"
	f.node("n7").Tainted, f.node("n8").Tainted = true, true
	look := Examine(f, []string{"n8"})
	if len(look.Findings) != 2 || look.Findings[0].Kind != SchedulerUnanswered || look.Findings[1].Node != "n8" {
		t.Errorf("%+v", look.Findings)
	}
}

func TestALaterStateIsNotTheSame(t *testing.T) {
	f := healthy()
	f.dropSlot("n4")
	first := Examine(f, nil).Findings
	f.maintenance("n4").Since = noon
	if same := Confirm(first, Examine(f, nil).Findings); len(same) > 0 {
		t.Errorf("%+v", same)
	}
}

func TestALookIsBounded(t *testing.T) {
	f := Facts{Scheduler: Scheduler{Execution: running(0)}}
	for i := range MaxFindings + 50 {
		f.Nodes = append(f.Nodes, Node{Name: fmt.Sprintf("n%04d", i), Tainted: true, Phase: strings.Repeat("ü", 500)}, Node{Name: fmt.Sprintf("h%d", i), Unschedulable: true})
	}
	look := Examine(f, nil)
	if len(look.Findings) != MaxFindings || look.More != 50 || look.Findings[0].Node != "n0000" || look.MoreNotes != MaxFindings+50-MaxNotes {
		t.Errorf("%d and %d more, notes %d more", len(look.Findings), look.More, look.MoreNotes)
	}
	for _, found := range look.Findings {
		if len(found.Text) > maxText {
			t.Fatalf("a text of %d bytes", len(found.Text))
		}
	}
}

func TestTheCommandsOfANextStepAreWhole(t *testing.T) {
	const long = "ip-10-0-12-34.eu-central-1.compute.internal"
	f := Facts{Scheduler: Scheduler{Execution: running(0)}, Nodes: []Node{{
		Name: long, Tainted: true, Phase: "Ready", Labelled: true, Excluded: true, OutOfService: true, Protections: []string{"cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"},
	}}}
	for _, found := range append(Examine(f, nil).Findings, Examine(f, nil).Notes...) {
		if strings.HasSuffix(found.NextStep, "…") {
			t.Errorf("%s: half a command: %s", found.Kind, found.NextStep)
		}
	}
}

func TestOnlyWhatIsNotListedIsDescribedOfThoseThatWait(t *testing.T) {
	f := healthy()
	f.Scheduler.Pending = append(f.Scheduler.Pending, Slot{ID: "x", Node: "n1", Requestor: "ghost", RunID: "run-ghost"})
	var runs []string
	for _, r := range Referred(f) {
		runs = append(runs, r.RunID)
		if !strings.HasPrefix(r.WorkflowID, prefix) {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"run-n1", "run-n2", "run-n3", "run-n4", "run-n5", "run-n6", "run-n7", "run-ghost"}; !slices.Equal(runs, want) {
		t.Errorf("%v", runs)
	}
}

func TestDeliveriesThatDoNotArrive(t *testing.T) {
	f := healthy()
	f.Deliveries = []Delivery{
		{WorkflowID: "notification/fine", RunID: "a"},
		{WorkflowID: "notification/slow", RunID: "b", Attempts: 2, Error: "503"},
		{WorkflowID: "notification/dead", RunID: "c", Attempts: 40, Error: "connection refused"},
		{WorkflowID: "notification/lost", RunID: "d", GivenUp: true},
	}
	found := Examine(f, nil).Findings
	if len(found) != 2 || found[0].Kind != DeliveryFailing || found[1].Kind != DeliveryGivenUp {
		t.Fatalf("%+v", found)
	}
	if !strings.Contains(found[0].Text, "notification/dead was tried 40 times: connection refused") || found[0].NextStep == "" || found[1].NextStep == "" {
		t.Errorf("%+v", found)
	}
}

func TestNodesOfWhichNothingIsKnownAreMissing(t *testing.T) {
	facts := Facts{
		Nodes: []Node{{Name: "worker-01"}}, Maintenances: []Maintenance{{Node: "gone-01", RunID: "r"}},
		Scheduler: Scheduler{Holders: []Slot{{Node: "gone-02"}}, Pending: []Slot{{Node: "gone-03"}}}, Requests: []Requests{{Node: "gone-04"}},
	}
	got := Examine(facts, []string{"worker-01", "nosuch", "gone-01", "gone-02", "gone-03", "gone-04"}).Missing
	if len(got) != 1 || got[0].Node != "nosuch" {
		t.Errorf("%v", got)
	}
	if got := Examine(facts, nil).Missing; got != nil {
		t.Errorf("of nothing asked: %v", got)
	}
}

// What a workflow cannot do and tries again is a finding, with the cause as the next step.
func TestTroublesAreFindings(t *testing.T) {
	f := healthy()
	f.Troubles = []Trouble{{
		WorkflowID: "health-check/workers", RunID: "run-h", What: "it cannot be found out which remediations run",
		Why: "may not list leases (grant it with `kubectl apply -f deploy/kubernetes/rbac-health.yaml`)", Since: noon,
	}}
	found := Examine(f, nil).Findings
	if len(found) != 1 || found[0].Kind != WorkflowTroubled || found[0].Fix != "" || found[0].NextStep != f.Troubles[0].Why ||
		!strings.Contains(found[0].Text, "health-check/workers: it cannot be found out") {
		t.Fatalf("%+v", found)
	}
	if again := Confirm(found, Examine(f, nil).Findings); len(again) != 1 {
		t.Errorf("a second look does not confirm it: %+v", again)
	}
}
