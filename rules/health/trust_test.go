package health

import (
	"slices"
	"testing"
	"time"
)

// A check that begins anew decides before the remediation has said how far it is, and so by a revision that this has seen before.
func TestAnOrderCountsOnlyOnceItWasTaken(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.state = State{}
	c.state.Runs("n1", "older", c.now)
	c.running["n1"] = &Progress{Node: "n1"}
	c.decide()
	c.watch()
	c.want("the node is healthy", c.order("n1").Healthy)
	p := Progress{Node: "n1", RunID: "older", Revision: 3, Step: 1, StartedAt: c.now, Steps: []StepState{{Index: 0, StartedAt: c.now, TimedOut: &c.now}}}
	c.want("it counts", c.state.Report(p))
	c.want("it was not announced that", c.order("n1").Healthy && c.order("n1").Revision > 3)
	c.want("nothing goes back", c.order("n1").Step == 1 && slices.Equal(c.order("n1").TimedOut, []int{0}))
	p.Revision = c.order("n1").Revision
	c.want("it counts", c.state.Report(p))
	c.want("now it was", c.order("n1").Revision == p.Revision)
}

func TestAForgedRevisionIsForgottenByTheNextReport(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	forged := *c.running["n1"]
	forged.Revision = 1 << 40
	c.state.Report(forged)
	c.state.Report(*c.running["n1"])
	if got := c.order("n1").Revision; got > 100 {
		t.Errorf("the next order has revision %d, and the remediation has taken %d", got, c.running["n1"].Revision)
	}
}

func TestARunThatWasSeenIsBelieved(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	forged := *c.running["n1"]
	forged.RunID, forged.StartedAt = "forged", c.now.Add(1000*time.Hour)
	c.want("a later one counts", c.state.Report(forged))
	c.want("the true one does not", !c.state.Report(*c.running["n1"]))
	c.state.Runs("n1", c.running["n1"].RunID, c.now)
	n, _ := c.state.Node("n1")
	c.want("what there may be of it is not forgotten", len(n.Remediation.Progress.Steps) == 1)
	c.want("the true one counts", c.state.Report(*c.running["n1"]))

	over := *c.running["n1"]
	over.Ended = true
	c.state.Report(over)
	c.decide()
	c.want("it is taken for over", !c.state.Report(*c.running["n1"]))
	c.state.Runs("n1", over.RunID, c.now)
	c.want("it runs", c.state.Remediating() && c.state.Report(*c.running["n1"]))
}

func TestARemediationOfWhichNothingIsKnownHasTheTurn(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"minHealthy":0`), "n1", "n2", "n3")
	c.nodes["n1"].ControlPlane = true
	c.state.Runs("m1", "r1", c.now)
	c.running["m1"] = &Progress{Node: "m1"}
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.wantBegun("m1")
	c.state.Report(Progress{Node: "m1", UID: "u1", RunID: "r1", StartedAt: c.now})
	c.decide()
	c.wantBegun("m1", "n1")
}

func TestNothingIsDecidedBeforeEverythingWasSeenAnew(t *testing.T) {
	a := specOf(t, oneTemplate)
	b := specOf(t, oneTemplate, `"unhealthyConditions":[{"type":"Disk","status":"True","duration":"1m"}]`)
	c := newCluster(t, a, "n1", "n2", "n3")
	c.ill("n1", 0)
	c.want("a template changes nothing of that", !c.state.Reconfigured(a, specOf(t, oneTemplate, `"minHealthy":1`)) && c.state.Seen.Known)
	c.want("other conditions do", c.state.Reconfigured(a, b) && c.state.Reconfigured(b, a))
	c.pass(time.Hour)
	c.wantBegun()
	c.watch()
	c.wantBegun("n1")
}
