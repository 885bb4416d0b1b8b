package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/heartbeat"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/announce"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/meter"
)

// The kinds of effects and watches.
const (
	prepare    = "prepare"
	listNodes  = "list"
	findBegun  = "find"
	beginNode  = "begin"
	sendOrder  = "order"
	awaitEnds  = "ends"
	watchNodes = "nodes"
	sendIntent = "intent"
	sendReport = "report"
)

const (
	// freshFor is how long a list of the matching nodes counts: nodes are begun only on one that is younger. While nothing can be begun,
	// nobody looks.
	freshFor = 15 * time.Second
	// listWithin, findWithin and findTries bound a look-up: a plan that ends, or continues as new, waits for it. Else it is begun anew.
	// Thousands of maintenances are found in minutes where some do not answer.
	listWithin = 2 * time.Minute
	findWithin = 15 * time.Minute
	findTries  = 3
	// matchAgain stands for the digest of a list that excluded a node which waits again: that list did not check whether the node
	// still matches.
	matchAgain = "match again"
)

func (p *maintenancePlan) Decide(t controller.Turn) (d controller.Decision) {
	switch {
	case p.Invalid != "":
		d.End = &controller.End{Err: inbox.InvalidSpec(errors.New(p.Invalid))}
	case p.Prepared == nil:
		d.Effects = append(d.Effects, p.prepare(t.Now))
	case p.Phase.Ended():
	case p.Staged != nil:
		p.stage(t, &d)
	default:
		p.roll(t, &d)
	}
	d.Effects = append(d.Effects, p.report()...)
	switch {
	case !p.Phase.Ended():
	case !p.Recorded:
		id := api.PlanRecordID(p.Info.Cluster, p.name, p.Info.Run)
		d.Effects = append(d.Effects, p.Record(p.Info, id, "plan "+p.name, p.Prepared.Kinds))
	case p.Delivered() && !p.reportDue():
		d.End = &controller.End{Err: p.failure()}
	}
	d.Watches = append(d.Watches, p.Deliver(t.Now)...)
	return d
}

func (p *maintenancePlan) Outcome(o controller.Outcome, now time.Time) {
	switch o.Key.Kind {
	case prepare:
		p.prepared(o, now)
	case listNodes, watchNodes:
		p.listed(o, now)
	case findBegun:
		p.found(o, now)
	case beginNode:
		p.nodeBegan(o, now)
	case sendOrder:
		p.orderSent(o)
	case awaitEnds:
		p.sawEnds(o, now)
	case sendIntent:
		p.intentSent(o, now)
	case sendReport:
		p.reportSent(o, now)
	case controller.RecordKind:
		if p.TakeRecord(o) {
			p.note(fmt.Sprintf("the audit record was not begun as %s: %s", o.Key.Of, call.Cause(o.Err)), now)
		}
	case announce.Kind:
		if o.Err != nil {
			p.note("a channel did not get every notification: "+o.Begun.(controller.Watch).Summary+": "+call.Cause(o.Err), now)
		}
		p.Delivery(&p.Base, o, now)
	}
}

func (p *maintenancePlan) prepare(now time.Time) controller.Effect {
	sample, _ := p.spec.InputOf("any", now) // it was decoded
	return controller.Activity{
		Meta: controller.Meta{Key: controller.Key{Kind: prepare}, Summary: "look up what the plan names"},
		Call: controller.Call{Func: call.Settings.Prepare, Local: true}, Input: json.RawMessage(sample),
	}
}

func (p *maintenancePlan) prepared(o controller.Outcome, now time.Time) {
	var prepared settings.Prepared
	if o.Get(&prepared) != nil {
		return
	}
	if prepared.Unknown != "" {
		p.Invalid = p.spec.InPlan(prepared.Unknown)
		return
	}
	// Defaults, hooks and the policy are the maintenances' own to look up.
	p.Prepared = &settings.Prepared{
		Starter: prepared.Starter, SearchAttributes: prepared.SearchAttributes, Kinds: prepared.Kinds, Channels: prepared.Channels,
		Audited: prepared.Audited,
	}
	earlier := slices.Clone(p.Events)
	p.announce(notices.PlanBegun, p.spec.Reason, now)
	for _, e := range earlier { // messages that came first
		p.send(e, now)
	}
}

func (p *maintenancePlan) wanted() planactivity.ListInput {
	s := p.selection()
	return planactivity.ListInput{
		NodeSelector: s.NodeSelector, Selector: s.Selector, Names: s.Nodes, Exclude: s.Exclude,
		CountPods: p.spec.Strategy.Order == plan.FewestPods, Digest: p.Digest,
	}
}

// isStale reports whether the list is too old to begin a node on.
func (p *maintenancePlan) isStale(now time.Time) bool {
	return p.Digest == "" || p.Digest == matchAgain || now.Sub(p.ListedAt) > freshFor
}

func (p *maintenancePlan) list() controller.Effect {
	return controller.Activity{
		Meta: controller.Meta{Key: controller.Key{Kind: listNodes}, Summary: "list the nodes of plan " + p.name},
		Call: controller.Call{Func: call.Plans.ListPlanNodes, Within: listWithin}, Input: p.wanted(),
	}
}

// listed takes the nodes that match now. A plan whose nodes can never be listed ends.
func (p *maintenancePlan) listed(o controller.Outcome, now time.Time) {
	var listed planactivity.Listed
	switch err := o.Get(&listed); {
	case call.IsError(err, api.ErrorInvalidSpec):
		p.ClearBackoff(o.Key)
		p.stop(api.PlanAborted, "its nodes cannot be listed: "+call.Cause(err), now)
		return
	case err != nil:
		p.Fails(o.Key, "the nodes of the plan cannot be listed", call.Cause(err), now)
		return
	}
	p.ClearBackoff(o.Key)
	if !reflect.DeepEqual(inputOf(o.Begun), p.wanted()) {
		return // the selection has changed meanwhile
	}
	p.ListedAt = now
	first := p.Digest == ""
	p.Digest = listed.Digest
	if listed.Unchanged {
		return
	}
	var nodes []plan.Node
	var came, went int
	if p.Staged != nil {
		nodes, came, went = plan.MatchTogether(p.Nodes, listed.Nodes, now)
	} else {
		nodes, came, went = plan.Match(p.spec.Strategy.Order, p.Nodes, listed.Nodes, now)
	}
	if nodes = plan.Forget(nodes, plan.MaxNodes); len(nodes) > plan.MaxNodes {
		p.stop(api.PlanAborted, fmt.Sprintf("%d nodes came and went: a plan takes %d at most", len(nodes), plan.MaxNodes), now)
		return
	}
	p.Nodes, p.places = nodes, nil
	p.Warnings = plan.Reach{
		All: listed.All, Matching: len(listed.Nodes), ControlPlanes: listed.ControlPlanes.All,
		MatchingControlPlane: listed.ControlPlanes.Matching, Missing: listed.Missing, MoreMissing: listed.MoreMissing,
	}.Warnings()
	if came+went == 0 {
		return
	}
	if !first {
		p.note(number.Of(came, "node")+" came to match, "+number.Form(went, "does", "do")+" not match any more", now)
	}
	if p.Staged != nil && p.Staged.Stage.Holds() {
		p.Staged.revise()
	}
}

func inputOf(begun any) any {
	if w, ok := begun.(controller.Watch); ok {
		return w.Input
	}
	return begun.(controller.Activity).Input
}

// find finds the maintenances that this plan, or an earlier one of its name, has begun. Where starts have shown that some run already,
// only those are examined.
func (p *maintenancePlan) find(now time.Time) controller.Effect {
	in := planactivity.FindInput{RunID: p.Info.Run, Since: p.CreatedAt, Again: p.MayRun, Requestor: p.spec.Requestor}
	in.Maintenance, _ = p.spec.InputOf("any", now) // it was decoded
	for i := range p.Nodes {
		if name := p.Nodes[i].Name; p.Known && p.Sought[name] {
			in.Nodes = append(in.Nodes, name)
		}
	}
	return controller.Activity{
		Meta: controller.Meta{Key: controller.Key{Kind: findBegun}, Summary: "find the maintenances that were begun"},
		Call: controller.Call{Func: call.Plans.FindBegun, Heartbeat: heartbeat.WatchTimeout, Within: findWithin, Attempts: findTries}, Input: in,
	}
}

// finish ends the plan as it was stopped, or by the counts of its nodes. Why is said of one without failures.
func (p *maintenancePlan) finish(why string, now time.Time) {
	counts := plan.Count(p.Nodes)
	switch {
	case p.Stop != "":
		p.end(p.Stop, p.StoppedWhy, now)
	case counts.Failures() > 0:
		p.end(api.PlanIncomplete, fmt.Sprintf("%d of %d nodes failed", counts.Failures(), counts.Total), now)
	case why == "" && counts.Skipped > 0 && counts.Done == 0:
		p.end(api.PlanCompleted, "no node went through its maintenance", now)
	default:
		p.end(api.PlanCompleted, why, now)
	}
}

// end ends the plan: what is left is to announce that.
func (p *maintenancePlan) end(phase api.PlanPhase, why string, now time.Time) {
	p.enter(phase, why, now)
	p.WaitingFor, p.Until = "", time.Time{}
	p.Count(meter.PlansEnded, string(phase))
	p.announce(notices.PlanEnded, p.summary(), now)
	p.Recorded = !p.Prepared.Audited
}

func (p *maintenancePlan) enter(phase api.PlanPhase, why string, now time.Time) {
	p.Phase, p.Since, p.Failure = phase, now, why
}

// maxFailures bounds the failures of a result.
const maxFailures = 100

func (p *maintenancePlan) result() api.PlanResult {
	if !p.Phase.Ended() {
		return api.PlanResult{}
	}
	result := api.PlanResult{
		Name: p.name, WorkflowID: p.Info.WorkflowID, RunID: p.Info.Run, Phase: p.Phase, Message: p.summary(),
		CreatedAt: p.CreatedAt, EndedAt: p.Since, Counts: plan.Count(p.Nodes), Moves: p.Moves,
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; (n.State == plan.Failed || n.State == plan.Held) && len(result.Failures) < maxFailures {
			result.Failures = append(result.Failures, p.nodeOf(n))
		}
	}
	result.MoreFailures = result.Counts.Failures() - len(result.Failures)
	return result
}

// failure closes the workflow as cancelled, or as failed with the reason; nil is as completed.
func (p *maintenancePlan) failure() error {
	switch result := p.result(); p.Phase {
	case api.PlanCancelled:
		return temporal.NewCanceledError(result)
	case api.PlanIncomplete, api.PlanAborted:
		return temporal.NewNonRetryableApplicationError(result.Message, api.ErrorPlanIncomplete, nil, result)
	default:
		return nil
	}
}

// maxEvents bounds the events that are kept, and keepEvents the first of them, which say how it began.
const (
	maxEvents  = 60
	keepEvents = 10
)

// noted is the state of an event that channels are not sent.
const noted notices.State = "PlanNote"

// note keeps something noteworthy that channels are not sent.
func (p *maintenancePlan) note(message string, now time.Time) { p.announce(noted, message, now) }

// announce keeps an event and sends it to the channels that want it. A dead channel delays nothing but the plan's own end.
func (p *maintenancePlan) announce(state notices.State, message string, now time.Time) {
	sequence := 1
	if n := len(p.Events); n > 0 {
		sequence = p.Events[n-1].Sequence + 1
	}
	event := api.PlanEvent{Sequence: sequence, State: state, At: now, Message: bounds.Cut(message, bounds.Text)}
	p.Events = append(p.Events, event)
	if len(p.Events) > maxEvents {
		p.Events = slices.Delete(p.Events, keepEvents, keepEvents+1)
	}
	p.send(event, now)
}

// send sends an event to channels. Before it is known which there are, it waits.
func (p *maintenancePlan) send(e api.PlanEvent, now time.Time) {
	if p.Prepared == nil || e.State == noted {
		return
	}
	p.Announce(&p.Base, p.Prepared.Channels, notices.Event{
		ID: api.EventID(p.Info.WorkflowID, p.Info.Run, api.Moment{Sequence: e.Sequence, At: e.At}), Sequence: e.Sequence,
		State: e.State, At: e.At, Plan: p.name, Requestor: p.spec.Requestor, Owner: p.spec.Owner, Cluster: p.Info.Cluster,
		Reason: p.spec.Reason, Ticket: p.spec.Ticket, Phase: string(p.Phase), Message: e.Message,
		WorkflowID: p.Info.WorkflowID, RunID: p.Info.Run,
	}, now)
}
