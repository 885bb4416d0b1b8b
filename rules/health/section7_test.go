package health

import (
	"strings"
	"testing"
	"time"
)

func ptr[T any](v T) *T { return &v }

func only(names ...string) string { return strings.Join(names, " ") }

func (c *cluster) wantBegun(names ...string) {
	c.t.Helper()
	c.want("remediations of "+only(names...), strings.Join(c.begun(), " ") == only(names...))
}

func (c *cluster) wantPhase(phase Phase, healthy, observed int) {
	c.t.Helper()
	s := c.status()
	if s.Phase != phase || s.HealthyNodes != healthy || s.ObservedNodes != observed {
		c.t.Fatalf("phase %s with %d of %d healthy, want %s with %d of %d; %s", s.Phase, s.HealthyNodes, s.ObservedNodes, phase, healthy, observed, s.Reason)
	}
}

// The names of these tests are medik8s' test cases.

func TestRemediationBeginsStrictlyAfterTheDuration(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.wantPhase(PhaseEnabled, 3, 3)
	c.ill("n1", 0)
	c.wantBegun()
	c.wantPhase(PhaseEnabled, 2, 3)
	c.want("a wake", c.last.Wake.Equal(start.Add(300*time.Second+tick)))
	c.pass(300 * time.Second)
	c.wantBegun()
	c.pass(tick)
	c.wantBegun("n1")
	c.made("n1")
	c.wantPhase(PhaseRemediating, 2, 3)
	s := c.status()
	c.want("one remediation", len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1 && s.InFlightRemediations["n1"].Equal(c.now))
	c.want("detected once", c.announced(EventDetectedUnhealthy) == 1 && c.announced(EventRemediationCreated) == 1)
}

func TestNodeIsHealthyWhenItsRemediationIsGone(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.well("n1")
	c.want("it is to be removed", c.order("n1").Healthy && len(c.last.Orders) == 1)
	c.wantPhase(PhaseRemediating, 2, 3)
	c.want("since when", c.status().UnhealthyNodes[0].ConditionsHealthyTimestamp != nil)
	c.end("n1")
	c.wantPhase(PhaseEnabled, 3, 3)
	c.want("removed", c.announced(EventRemediationRemoved) == 1 && len(c.status().UnhealthyNodes) == 0)
}

func TestTooFewHealthy(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(7)...)
	for _, name := range numbered(4) {
		c.ill(name, 0)
	}
	c.pass(301 * time.Second)
	c.wantBegun()
	c.wantPhase(PhaseEnabled, 3, 7)
	c.want("four nodes", len(c.status().UnhealthyNodes) == 4)
	c.want("announced once", c.announced(EventRemediationSkipped) == 1)
	c.pass(time.Second)
	c.want("announced once", c.announced(EventRemediationSkipped) == 1)
	c.well("n4")
	c.wantBegun("n1", "n2", "n3")
}

func TestFreshlyIllNodesLowerTheHealthyCount(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(200 * time.Second)
	c.ill("n2", 0)
	c.pass(101 * time.Second)
	c.wantBegun()
	c.wantPhase(PhaseEnabled, 1, 3)
}

func TestRemovalThatLastsCountsAgainstTheThreshold(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.well("n1")
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n1")
	c.wantPhase(PhaseRemediating, 1, 3)
	c.end("n1")
	c.wantBegun("n2")
}

func TestOldRemediation(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.want("a wake", c.last.Wake.Equal(c.now.Add(48*time.Hour)))
	c.pass(48*time.Hour - time.Second)
	c.want("not yet", !c.order("n1").Old)
	c.pass(2 * time.Minute)
	c.want("marked and announced", c.order("n1").Old && c.announced(EventOldRemediation) == 1 && c.order("n1").TimedOut == nil)
	c.obey("n1")
	c.pass(time.Hour)
	c.want("once", c.announced(EventOldRemediation) == 1)
}

func TestRemediationOfSomebodyElse(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.end("n1", func(p *Progress) { p.NotOwned = "Reboot n1 of NodeHealthCheck other" })
	c.want("shown, not remediated", len(c.status().UnhealthyNodes) == 1 && len(c.status().UnhealthyNodes[0].Remediations) == 0)
	c.wantPhase(PhaseEnabled, 2, 3)
	c.wantBegun()
	c.want("a try later", c.last.Wake.Equal(c.now.Add(time.Minute)) && c.announced(EventRemediationSkipped) == 1)
	c.pass(time.Minute)
	c.wantBegun("n1")
}

func TestLeaseOfSomebodyElse(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	for range 3 {
		c.wantBegun("n1")
		c.end("n1", func(p *Progress) { p.LeaseHeldBy = "somebody" })
		c.wantPhase(PhaseEnabled, 2, 3)
		c.pass(59 * time.Second)
		c.wantBegun()
		c.pass(time.Second)
	}
	c.want("skipped is announced once", c.announced(EventRemediationSkipped) == 1 && c.announced(EventDetectedUnhealthy) == 1)
	c.made("n1")
	c.wantPhase(PhaseRemediating, 2, 3)
}

func TestLeaseIsTriedOnlyWhereTheThresholdStillAllows(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.end("n1", func(p *Progress) { p.LeaseHeldBy = "somebody" })
	c.ill("n2", 0)
	c.pass(2 * time.Minute)
	c.wantBegun()
	c.well("n2")
	c.wantBegun("n1")
}

func TestUnknownToFalseKeepsTheRemediation(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 1)
	c.pass(301 * time.Second)
	c.made("n1")
	c.ill("n1", 0)
	c.pass(time.Minute)
	c.want("kept", !c.order("n1").Healthy && c.order("n1").Revision == 1)
	c.wantPhase(PhaseRemediating, 2, 3)
	c.well("n1")
	c.want("removed", c.order("n1").Healthy)
}

func TestEscalationWaitsForTheNewDuration(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 1)
	c.pass(301 * time.Second)
	c.made("n1")
	c.pass(30 * time.Second)
	c.ill("n1", 0)
	c.pass(5 * time.Minute)
	c.want("the step stands still", c.order("n1").Step == 0 && len(c.order("n1").TimedOut) == 0)
	c.pass(tick)
	c.want("then timed out and the next", c.order("n1").Step == 1 && len(c.order("n1").TimedOut) == 1)
	c.obey("n1")
	c.want("two objects", len(c.status().UnhealthyNodes[0].Remediations) == 2)
}

func TestFourStepsOfOneKind(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("5m", "1m", "4m", "2m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	for i, timeout := range []time.Duration{5 * time.Minute, time.Minute, 4 * time.Minute} {
		c.pass(timeout)
		c.want("strictly after the timeout", c.order("n1").Step == i)
		c.pass(tick)
		c.want("the next step", c.order("n1").Step == i+1 && len(c.order("n1").TimedOut) == i+1)
		c.obey("n1")
	}
	c.want("each announced", c.announced(EventRemediationCreated) == 4 && c.announced(EventRemediationEscalated) == 3)
	c.pass(2*time.Minute + tick)
	c.want("the last one times out too", c.announced(EventNoTemplateLeft) == 1 && len(c.order("n1").TimedOut) == 4 && c.order("n1").Step == 3)
	c.obey("n1")
	c.pass(time.Hour)
	c.want("announced once", c.announced(EventNoTemplateLeft) == 1)
	c.well("n1")
	c.want("all removed", c.order("n1").Healthy)
}

func TestOneNodesStepsStopNoOthers(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), numbered(7)...)
	c.ill("n1", 0)
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.end("n2", func(p *Progress) { p.Failure = "the API server refused it" })
	c.want("announced", c.announced(EventRemediationFailed) == 1)
	c.pass(61 * time.Second)
	c.want("the other goes on", c.order("n1").Step == 1)
	c.wantBegun("n1", "n2")
}

func TestSucceededIsNotMarked(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.running["n1"].Steps[0].Succeeded = ptr(true)
	c.report("n1")
	c.pass(61 * time.Second)
	c.want("the next step without a mark", c.order("n1").Step == 1 && len(c.order("n1").TimedOut) == 0)
}

func TestFailedStepEscalatesAtOnce(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("5m", "5m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.running["n1"].Steps[0].Succeeded = ptr(false)
	c.report("n1")
	c.want("at once", c.order("n1").Step == 1 && len(c.order("n1").TimedOut) == 1)
}

func TestClassicTemplateHasNoTimeout(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.running["n1"].Steps[0].Succeeded = ptr(false)
	c.report("n1")
	c.pass(40 * time.Minute)
	c.want("nothing is ordered", c.order("n1").Revision == 1)
	c.want("it is shown", *c.status().UnhealthyNodes[0].Remediations[0].Succeeded == false)
}

func TestExcludeLabel(t *testing.T) {
	for _, test := range []struct {
		excluded bool
		value    string
		begins   bool
		invalid  int
	}{{true, "true", false, 0}, {true, "false", true, 0}, {true, "", true, 1}, {false, "", true, 0}} {
		t.Run(test.value, func(t *testing.T) {
			c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
			c.nodes["n1"].Excluded, c.nodes["n1"].Exclude = test.excluded, test.value
			c.ill("n1", 0)
			c.pass(301 * time.Second)
			c.want("begun or not", (len(c.begun()) == 1) == test.begins)
			c.want("announced", c.announced(EventInvalidNodeLabel) == test.invalid)
			c.wantPhase(PhaseEnabled, 2, 3)
			if !test.begins {
				c.want("skipped once", c.announced(EventRemediationSkipped) == 1)
				c.nodes["n1"].Excluded = false
				c.watch()
				c.wantBegun("n1")
			}
		})
	}
}

func TestExcludedLaterKeepsTheRemediationAndItsStep(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.nodes["n1"].Excluded, c.nodes["n1"].Exclude = true, "true"
	c.watch()
	c.pass(time.Hour)
	c.want("kept as it is", c.order("n1").Revision == 1)
	c.well("n1")
	c.want("removed", c.order("n1").Healthy)
}

func TestHealthyDelay(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"healthyDelay":"3s"`), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.want("not delayed while ill", c.status().UnhealthyNodes[0].HealthyDelayed == nil)
	c.well("n1")
	c.want("a wake", c.last.Wake.Equal(c.now.Add(3*time.Second)))
	c.pass(2 * time.Second)
	c.want("kept", !c.order("n1").Healthy && *c.status().UnhealthyNodes[0].HealthyDelayed)
	// A relapse begins the delay anew.
	c.ill("n1", 0)
	c.want("kept", c.status().UnhealthyNodes[0].HealthyDelayed == nil)
	c.pass(10 * time.Second)
	c.well("n1")
	c.pass(2 * time.Second)
	c.want("kept", !c.order("n1").Healthy)
	c.pass(time.Second)
	c.want("removed", c.order("n1").Healthy)
}

func TestHealthyDelayByHand(t *testing.T) {
	for name, release := range map[string]func(*cluster){
		"annotation": func(c *cluster) { c.nodes["n1"].Confirmed = true; c.watch() },
		"message": func(c *cluster) {
			if err := c.state.Confirm("n1", "ops"); err != nil {
				c.t.Fatal(err)
			}
			c.decide()
		},
		"field": func(c *cluster) { c.spec.HealthyDelay = 0; c.decide() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, specOf(t, oneTemplate, `"healthyDelay":"-1s"`), "n1", "n2", "n3")
			c.ill("n1", 0)
			c.pass(301 * time.Second)
			c.made("n1")
			if c.state.Confirm("n1", "ops") == nil || c.state.Confirm("n2", "ops") == nil {
				t.Fatal("a node that is ill, or not remediated, is confirmed")
			}
			c.well("n1")
			c.pass(100 * time.Hour)
			c.want("kept, announced once", !c.order("n1").Healthy && c.last.Wake.IsZero() && c.announced(EventConfirmationNeeded) == 1)
			c.want("not delayed by time", c.status().UnhealthyNodes[0].HealthyDelayed == nil)
			release(c)
			c.want("removed", c.order("n1").Healthy)
		})
	}
}

func TestPositiveDelayIsSkippedByConfirmation(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"healthyDelay":"1h"`), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.nodes["n1"].Confirmed = true
	c.watch()
	c.want("kept while ill", !c.order("n1").Healthy)
	c.well("n1")
	c.want("removed", c.order("n1").Healthy)
}

func TestDeletedNode(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	*c.nodes["n1"] = Facts{Name: "n1", Left: true, Gone: true}
	c.running["n1"].PermanentNodeDeletionExpected = true
	c.running["n1"].Steps[0].Succeeded = ptr(false)
	c.report("n1")
	c.watch()
	c.pass(time.Hour)
	c.want("kept", !c.order("n1").Healthy)
	c.wantPhase(PhaseRemediating, 2, 2)
	c.running["n1"].Steps[0].Succeeded = ptr(true)
	c.report("n1")
	c.want("removed", c.order("n1").Healthy)
	c.end("n1")
	c.wantPhase(PhaseEnabled, 2, 2)
	c.want("no entry stays", len(c.state.Nodes) == 0)
}

func TestDeletedOrUnselectedNodeEndsItsRemediation(t *testing.T) {
	for name, left := range map[string]Facts{"deleted": {Name: "n1", Left: true, Gone: true}, "unselected": {Name: "n1", UID: "uid-n1", Left: true}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
			c.ill("n1", 0)
			c.pass(301 * time.Second)
			c.made("n1")
			*c.nodes["n1"] = left
			c.watch()
			c.want("removed at once", c.order("n1").Healthy)
		})
	}
}

func TestUnremediatedEntryOfADeletedNodeLeaves(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"pauseRequests":["wait"]`), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.want("shown", len(c.status().UnhealthyNodes) == 1)
	delete(c.nodes, "n1")
	c.watch()
	c.want("gone", len(c.status().UnhealthyNodes) == 0 && len(c.state.Nodes) == 0)
}

func TestRecreatedNodeIsTreatedByItsConditions(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	*c.nodes["n1"] = Facts{Name: "n1", UID: "other", Matches: []Match{{Index: 1, Since: c.now}}}
	c.watch()
	c.want("kept", !c.order("n1").Healthy)
	c.well("n1")
	c.want("removed", c.order("n1").Healthy)
}

func TestPause(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3", "n4", "n5")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	if err := c.state.Pause("ops", "upgrade of the fabric", c.now); err != nil {
		t.Fatal(err)
	}
	c.decide()
	c.wantPhase(PhasePaused, 4, 5)
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n1")
	c.well("n1")
	c.want("what recovered is removed", c.order("n1").Healthy)
	c.end("n1")
	if c.state.Resume("other") == nil {
		t.Fatal("somebody else's pause is withdrawn")
	}
	if err := c.state.Resume("ops"); err != nil {
		t.Fatal(err)
	}
	c.decide()
	c.wantBegun("n2")
	c.want("announced once", c.announced(EventRemediationSkipped) == 1)
}

func TestUpgrade(t *testing.T) {
	upgrading := true
	c := newCluster(t, specOf(t, escalating("1m", "1m")), numbered(5)...)
	during := func() {
		c.watch(func(o *Observation) {
			if upgrading {
				o.Upgrading = "ClusterVersion version is progressing"
			}
		})
	}
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.nodes["n2"].Matches = []Match{{Index: 0, Since: c.now.Add(-time.Hour)}}
	during()
	c.wantBegun("n1")
	c.wantPhase(PhaseRemediating, 3, 5)
	c.pass(time.Hour)
	c.want("no further step", c.order("n1").Step == 0)
	c.nodes["n1"].Matches = nil
	during()
	c.want("what recovered is removed", c.order("n1").Healthy)
	upgrading = false
	during()
	c.wantBegun("n1", "n2")
}

func TestNodeThatIsUpgradedOrUnderMaintenance(t *testing.T) {
	for name, change := range map[string]func(*Facts, bool){
		"upgrade": func(f *Facts, on bool) {
			f.Upgrading = map[bool]string{true: "its configuration is being changed"}[on]
		},
		"maintenance": func(f *Facts, on bool) {
			f.UnderMaintenance = map[bool]string{true: "node-maintenance/n1/ops"}[on]
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, specOf(t, oneTemplate), numbered(5)...)
			change(c.nodes["n1"], true)
			c.ill("n1", 0)
			c.ill("n2", 0)
			c.pass(301 * time.Second)
			c.wantBegun("n2")
			change(c.nodes["n1"], false)
			c.watch()
			c.wantBegun("n1", "n2")
		})
	}
}

func TestNodeGainsTheLabel(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2")
	c.wantPhase(PhaseEnabled, 2, 2)
	c.nodes["n3"] = &Facts{Name: "n3"}
	c.watch()
	c.wantPhase(PhaseEnabled, 3, 3)
}

func TestDisabled(t *testing.T) {
	for _, reason := range []string{DisabledTemplateNotFound, DisabledTemplateInvalid, DisabledMachineHealthCheck} {
		t.Run(reason, func(t *testing.T) {
			c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
			c.ill("n1", 0)
			disabled := func(o *Observation) { o.Disabled, o.DisabledReason = "it is not in order", reason }
			c.watch(disabled)
			c.pass(301 * time.Second)
			c.wantBegun()
			c.wantPhase(PhaseDisabled, 2, 3)
			first := c.status().Conditions[0]
			c.want("the condition", first.Type == ConditionDisabled && first.Status == "True" && first.Reason == reason)
			c.want("announced", c.announced(EventDisabled) == 1 && c.announced(EventEnabled) == 1)
			c.watch()
			c.wantBegun("n1")
			c.want("announced", c.announced(EventEnabled) == 2 && c.status().Conditions[0].Reason == NotDisabled)
		})
	}
}

func TestDisabledKeepsRemovingWhatRecovered(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	refused := func(o *Observation) {
		o.Disabled, o.DisabledReason = "its template is missing", DisabledTemplateNotFound
	}
	c.watch(refused)
	c.pass(time.Hour)
	c.want("no further step", c.order("n1").Step == 0)
	c.nodes["n1"].Matches = nil
	c.watch(refused)
	c.want("removed", c.order("n1").Healthy && c.status().Conditions[0].Reason == DisabledTemplateNotFound)
}

func TestStorm(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"minHealthy":4`, `"stormCooldownDuration":"2s"`, `"unhealthyConditions":[{"type":"Ready","status":"False","duration":"1s"}]`), numbered(7)...)
	settle := func() { c.pass(time.Second + tick) }
	condition := func(kind string) *Condition {
		for _, found := range c.status().Conditions {
			if found.Type == kind {
				return &found
			}
		}
		return nil
	}
	for _, name := range numbered(3) {
		c.ill(name, 0)
	}
	settle()
	for _, name := range c.begun() {
		c.made(name)
	}
	c.wantBegun("n1", "n2", "n3")
	c.want("no storm yet", condition(ConditionStorm) == nil)
	c.ill("n4", 0)
	settle()
	c.wantBegun("n1", "n2", "n3")
	c.want("storm", condition(ConditionStorm).Status == "True" && condition(ConditionStormCooldown).Status == "False")
	c.well("n1")
	c.end("n1")
	c.wantBegun("n2", "n3")
	cooling := condition(ConditionStormCooldown)
	c.want("cooldown", cooling.Status == "True" && condition(ConditionStorm).Status == "True")
	c.pass(time.Second)
	c.ill("n5", 0)
	settle()
	c.want("storm again", condition(ConditionStormCooldown).Status == "False" && condition(ConditionStorm).Status == "True")
	c.well("n5")
	c.want("a cooldown from its beginning", condition(ConditionStormCooldown).Status == "True" && condition(ConditionStormCooldown).LastTransitionTime.Equal(c.now))
	c.pass(2*time.Second - tick)
	c.wantBegun("n2", "n3")
	c.pass(tick)
	c.wantBegun("n2", "n3", "n4")
	c.want("over", condition(ConditionStorm).Status == "False" && condition(ConditionStormCooldown).Status == "False")
	c.want("announced", c.announced(EventStormStarted) == 2 && c.announced(EventStormCooldownStarted) == 2 && c.announced(EventStormEnded) == 1)
}

func TestStormEndsWhenAllRecover(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"stormCooldownDuration":"1h"`), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.want("storm", c.status().Storm != nil)
	c.nodes["n1"].Matches = nil
	c.well("n2")
	c.want("over", c.status().Storm == nil && c.announced(EventStormEnded) == 1)
	c.ill("n3", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n3")
}

func TestStormEndsWithItsField(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"stormCooldownDuration":"1h"`), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.spec.StormCooldownDuration = nil
	c.decide()
	c.want("no condition is left", len(c.status().Conditions) == 1)
	c.well("n2")
	c.wantBegun("n1")
}

func TestFirstPendingSecondExpired(t *testing.T) {
	s := specOf(t, oneTemplate, `"unhealthyConditions":[{"type":"A","status":"True","duration":"1h"},{"type":"B","status":"True","duration":"1m"}]`)
	now := start.Add(10 * time.Minute)
	both := Facts{Matches: []Match{{0, start}, {1, start}}}
	if got := s.illnessOf(both, now); got.class != ill || got.index != 1 {
		t.Errorf("first pending and second over: %+v", got)
	}
	if got := s.illnessOf(Facts{Matches: both.Matches[:1]}, now); got.class != soon || !got.at.Equal(start.Add(time.Hour+tick)) {
		t.Errorf("pending only: %+v", got)
	}
	if got := s.illnessOf(Facts{}, now); got.class != well {
		t.Errorf("no conditions: %+v", got)
	}
}
