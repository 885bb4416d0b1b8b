package health

import (
	"encoding/json"
	"strconv"
	"time"

	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// judging is how far the worker has judged a spec: by one maintenance after the other that the spec would have made.
type judging struct {
	Samples int `json:"samples,omitempty"`
	// Prepared is what the worker says to the first.
	Prepared *settings.Prepared `json:"prepared,omitempty"`
}

// unjudged is the spec that the worker has to judge now; nil is none.
func (c *check) unjudged() *health.Spec {
	if c.Prepared == nil {
		return &c.Spec
	}
	return c.Candidate
}

// judge has the worker look up what a spec names of its configuration.
func (c *check) judge(spec health.Spec) controller.Effect {
	i := c.Judging.Samples
	return controller.Activity{
		Meta: controller.Meta{Key: controller.Key{Kind: judgeSpec, Of: strconv.Itoa(i)}, Summary: "look up what the spec names"},
		Call: controller.Call{Func: call.Settings.Prepare, Local: true}, Input: samples(c.name, spec)[i],
	}
}

// samples are the inputs of maintenances that name all that a spec does of the worker's configuration; the first has the
// channels of the check.
func samples(name string, spec health.Spec) []json.RawMessage {
	named := map[string]any{"node": "any"}
	if spec.Notify != nil {
		named["notify"] = *spec.Notify
	}
	first, _ := json.Marshal(named) // of texts
	all := []json.RawMessage{first}
	for _, step := range spec.Steps() {
		if step.Maintenance != nil {
			input, _ := step.Maintenance.InputOf("any", api.RemediationRequestor(name)) // it was decoded
			all = append(all, input)
		}
	}
	return all
}

func (c *check) judged(o controller.Outcome, now time.Time) {
	var prepared settings.Prepared
	spec := c.unjudged()
	if spec == nil || o.Key.Of != strconv.Itoa(c.Judging.Samples) || o.Get(&prepared) != nil {
		return
	}
	c.ClearBackoff(o.Key)
	if prepared.Unknown != "" {
		c.refuse(prepared.Unknown, now)
		return
	}
	if c.Judging.Samples == 0 {
		c.Judging.Prepared = &settings.Prepared{
			Starter: prepared.Starter, SearchAttributes: prepared.SearchAttributes, Kinds: prepared.Kinds, Channels: prepared.Channels,
			Audited: prepared.Audited,
		}
	}
	if c.Judging.Samples++; c.Judging.Samples == len(samples(c.name, *spec)) {
		c.takeSpec(now)
	}
}

// takeSpec has the spec count that the worker has judged.
func (c *check) takeSpec(now time.Time) {
	next, prepared := c.Candidate, c.Judging.Prepared
	if c.Prepared == nil {
		c.Prepared, c.Judging = prepared, judging{}
		return
	}
	if err := c.checkEdit(*next); err != nil {
		c.refuse(err.Error(), now)
		return
	}
	if c.Health.Reconfigured(c.Spec, *next) {
		c.seeAnew()
	}
	prepared.Starter = c.Prepared.Starter
	c.Spec, c.Prepared, c.Candidate, c.Judging, c.Refused = *next, prepared, nil, judging{}, ""
}

// refuse drops a spec. A check that was started with it does not begin.
func (c *check) refuse(why string, now time.Time) {
	c.Judging = judging{}
	if c.Prepared == nil {
		c.Invalid = why
		return
	}
	c.Candidate, c.Refused = nil, "the spec is refused: "+why
	c.Note(now, "refused a spec", why)
}

// checkEdit refuses what may not change while nodes are remediated.
func (c *check) checkEdit(next health.Spec) error {
	if !c.Health.Remediating() {
		return nil
	}
	return c.Spec.Locked(next)
}
