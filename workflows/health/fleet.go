package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/health"
	"drydock/rules/number"
	"drydock/rules/spec"
	"drydock/workflows/call"
	"drydock/workflows/loop"
	"drydock/workflows/meter"
)

const (
	// atOnce bounds the children that are being begun, and the orders under way: each takes the lock of the check, and of many that
	// wait for it the first is not the first to get it.
	atOnce = 16
	// maxChildren is how many remediations that go on a run may have begun: a server takes 2,000 children.
	maxChildren = 1000
	// answerWithin is how long a remediation has to say something before it is asked.
	answerWithin = 30 * time.Second
)

// fleet begins remediations, and tells them what to do until they say that they have heard it.
type fleet struct {
	*core
	// legs are what is under way to remediations, by node. It is only looked up in.
	legs map[string]*leg
	// heardOf hears of remediations that have said something, suspect that one of which nothing is known has.
	heardOf func(node string)
	suspect func()
	// starting counts the children being begun, sending the orders under way, children those that were begun and go on.
	starting, sending, children int
}

// leg is what is under way to a remediation.
type leg struct {
	busy bool
	// run is the first run of the remediation where this run has begun it.
	run string
	// sent is the revision of the order that was sent last, next when it is due again, and tries how often it was not answered.
	sent  int
	next  time.Time
	tries int
	// doubted: somebody has to see whether it runs.
	doubted bool
	// losses count how often in a row it has ended without a word, again is when it may be begun anew.
	losses int
	again  time.Time
}

func (f *fleet) leg(node string) *leg {
	l := f.legs[node]
	if l == nil {
		l = &leg{}
		f.legs[node] = l
	}
	return l
}

// crowded tells that the run has about as many children as a server takes.
func (f *fleet) crowded() bool { return f.children >= maxChildren }

// begin takes remediations that were decided on.
func (f *fleet) begin(decided []health.Begin) { f.state.Queue = append(f.state.Queue, decided...) }

// waiting are the nodes whose remediation was decided on and has not begun yet.
func (f *fleet) waiting() []string {
	var nodes []string
	for i := range f.state.Queue {
		nodes = append(nodes, f.state.Queue[i].Node)
	}
	return nodes
}

// withdraw drops remediations that do not begin after all.
func (f *fleet) withdraw(nodes []string) {
	if len(nodes) == 0 {
		return
	}
	f.state.Queue = slices.DeleteFunc(f.state.Queue, func(b health.Begin) bool { return slices.Contains(nodes, b.Node) })
	f.note("not begun after all: "+number.Of(len(nodes), "remediation"), "nothing may begin any more")
}

// run begins what waits, and tells remediations what they do not know yet.
func (f *fleet) run() {
	for len(f.state.Queue) > 0 && f.mayStart() {
		next := f.state.Queue[0]
		f.state.Queue = f.state.Queue[1:]
		if f.remediation(next.Node) != nil {
			// What was ordered since it was decided on it is told, and has to acknowledge.
			f.start(f.inputOf(next, firstRevision))
		}
	}
	queued := make(map[string]bool, len(f.state.Queue))
	for i := range f.state.Queue {
		queued[f.state.Queue[i].Node] = true
	}
	for i := range f.state.Health.Nodes {
		n := &f.state.Health.Nodes[i]
		if n.Remediation != nil && !queued[n.Name] {
			f.attend(n.Name, n.Remediation)
		}
	}
}

// firstRevision is that of the order by which a remediation is begun, maxStarting bounds the inputs of those that are being begun,
// in bytes: a server takes 4 MB of commands at once.
const (
	firstRevision = 1
	maxStarting   = 1 << 20
)

// mayStart tells whether another remediation may be begun now.
func (f *fleet) mayStart() bool {
	steps, _ := json.Marshal(f.state.Spec.Steps()) // it was read as JSON
	return f.starting < max(min(atOnce, maxStarting/(len(steps)+1)), 1)
}

// remediation is the one that runs of a node.
func (f *fleet) remediation(node string) *health.Running {
	n, _ := f.state.Health.Node(node)
	return n.Remediation
}

func (f *fleet) inputOf(b health.Begin, revision int) api.RemediationInput {
	return api.RemediationInput{
		Check: f.name, CheckRunID: f.runID, Node: b.Node, UID: b.UID, ControlPlane: b.ControlPlane, Steps: f.state.Spec.Steps(),
		Step: b.Step, Since: b.Since, Why: b.Why, Revision: revision, Conditions: f.state.Spec.UnhealthyConditions, Etcd: f.state.Spec.AskEtcd(),
		Audited: f.state.Prepared.Audited,
	}
}

// start begins a remediation in this workflow task. One that runs already says what it is at.
func (f *fleet) start(in api.RemediationInput) {
	l := f.leg(in.Node)
	l.busy, l.sent, l.run, l.tries, l.doubted = true, in.Revision, "", 0, false
	f.starting++
	options := call.Child(api.RemediationID(f.cluster, f.name, in.Node), "remediation of "+in.Node+" by "+f.name+": "+in.Why)
	options.TypedSearchAttributes = temporal.NewSearchAttributes(f.attributes(api.KindRemediation, api.AttributeNode.ValueSet(in.Node))...)
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(f.Ctx, options), api.NodeRemediationType, in)
	f.Does("begin the remediation of "+in.Node, child.GetChildWorkflowExecution(), func(started workflow.Future) {
		f.starting--
		var run workflow.Execution
		err := started.Get(f.Ctx, &run)
		l.busy, l.next = false, f.Now().Add(answerWithin)
		switch {
		case err == nil:
			l.run = run.RunID
			if r := f.remediation(in.Node); r != nil && r.Progress != nil {
				f.state.Health.Runs(in.Node, run.RunID, f.Now())
			}
			f.follow(in.Node, child, run.RunID)
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
			l.doubted, l.next = true, time.Time{}
		default:
			f.note("the remediation of "+in.Node+" could not be begun", call.Cause(err))
			l.doubted, l.next = true, f.Now().Add(loop.Backoff(l.tries))
			l.tries++
		}
	})
}

// follow hears of the end of a remediation, which says so itself before: the end of one that has not is looked into.
func (f *fleet) follow(node string, child workflow.Future, run string) {
	f.children++
	workflow.GoNamed(f.Ctx, "remediation of "+node, func(ctx workflow.Context) {
		_ = child.Get(ctx, nil) // how it has ended it says itself
		f.children--
		r := f.remediation(node)
		if r == nil || r.Progress != nil && r.Progress.RunID != run {
			return
		}
		l := f.leg(node)
		l.doubted, l.next = true, time.Time{}
		f.Dirty = true
	})
}

// attend tells a remediation what it does not know yet, and asks one that says nothing.
func (f *fleet) attend(node string, r *health.Running) {
	l := f.leg(node)
	if l.busy {
		return
	}
	known := acknowledged(r)
	switch {
	case known && !l.doubted:
		return
	case !known && r.Order.Revision > l.sent:
		l.next, l.tries = time.Time{}, 0
	}
	if f.Now().Before(l.next) {
		f.WakeAt(l.next, "tell remediations again")
		return
	}
	if f.sending >= atOnce {
		return // it follows as others come back
	}
	f.order(node, r, l)
}

// acknowledged: the remediation has taken its latest order.
func acknowledged(r *health.Running) bool {
	return r.Progress != nil && r.Progress.Revision >= r.Order.Revision
}

func (f *fleet) queued(node string) bool {
	return slices.ContainsFunc(f.state.Queue, func(b health.Begin) bool { return b.Node == node })
}

// order tells a remediation its present order.
func (f *fleet) order(node string, r *health.Running, l *leg) {
	order := api.RemediationOrder{RunID: l.run, Check: f.name, CheckRunID: f.runID, Tell: true, Order: r.Order}
	if acknowledged(r) {
		order.Order = health.Order{Node: node} // it only asks
	}
	if l.run == "" && r.Progress != nil {
		order.RunID = r.Progress.RunID
	}
	l.busy, l.sent = true, r.Order.Revision
	l.next = f.Now().Add(max(answerWithin, loop.Backoff(l.tries)))
	l.tries++
	f.sending++
	future := workflow.SignalExternalWorkflow(f.Ctx, api.RemediationID(f.cluster, f.name, node), "", api.SignalRemediationOrder, order)
	f.Does("tell the remediation of "+node, future, func(told workflow.Future) {
		f.sending--
		l.busy = false
		err := told.Get(f.Ctx, nil)
		var nobody *temporal.UnknownExternalWorkflowExecutionError
		switch {
		case errors.As(err, &nobody):
			f.lost(node)
		case err != nil:
			f.note("the remediation of "+node+" could not be told", call.Cause(err))
		}
	})
}

// lost begins a remediation anew that has ended without a word: it takes up what is left, and makes nothing before it is told to.
func (f *fleet) lost(node string) {
	n, _ := f.state.Health.Node(node)
	r, l := n.Remediation, f.leg(node)
	switch {
	case r == nil:
		return
	case f.Now().Before(l.again) || !f.mayStart():
		l.doubted, l.next = true, f.Now().Add(time.Second)
		if l.next.Before(l.again) {
			l.next = l.again
		}
		return
	}
	if r.Hearsay && r.Progress != nil && len(r.Progress.Steps) == 0 {
		over := *r.Progress
		over.Ended, over.Failure = true, "its workflow does not run"
		f.state.Health.Report(over)
		delete(f.legs, node)
		f.note("there is no remediation of "+node, "somebody has spoken in its name")
		return
	}
	l.again = f.Now().Add(loop.Backoff(l.losses))
	l.losses++
	f.note("the remediation of "+node+" has ended without a word", "another takes up what it has left")
	b := health.Begin{
		Node: node, UID: n.UID, ControlPlane: n.ControlPlane, Step: min(r.Order.Step, len(f.state.Spec.Steps())-1), Since: r.BeganAt, Why: r.Order.Why,
	}
	in := f.inputOf(b, 0)
	in.Resume = true
	if r.Progress != nil {
		in.Left = r.Progress.Steps
	}
	f.start(in)
}

// doubt has it seen whether remediations run, of which somebody says that they do not.
func (f *fleet) doubt(nodes []string) {
	for _, node := range nodes {
		if f.remediation(node) != nil {
			l := f.leg(node)
			l.doubted, l.next = true, time.Time{}
		}
	}
}

// heard takes what a remediation says.
func (f *fleet) heard(p api.RemediationProgress) {
	if err := validate(p); err != nil {
		f.note("ignored what a remediation says", err.Error())
		return
	}
	l := f.leg(p.Node)
	if l.run != "" && p.RunID != l.run {
		f.note("ignored what a remediation of "+p.Node+" says", "it is run "+p.RunID+", and the present one is "+l.run)
		f.doubtOther(p)
		return
	}
	f.heardOf(p.Node)
	unknown, began := true, f.Now()
	if r := f.remediation(p.Node); r != nil {
		unknown, began = false, r.BeganAt
	}
	if !f.state.Health.Report(p) {
		f.note("ignored what a remediation of "+p.Node+" says", "it is over, or another runs: "+p.RunID)
		f.doubtOther(p)
		return
	}
	l.losses, l.again = 0, time.Time{}
	l.doubted, l.tries = unknown, 0 // whether there is one at all is to be seen
	if p.Ended {
		if !unknown {
			meter.Remediations.Took(f.Ctx, "", f.Now().Sub(began))
		}
		delete(f.legs, p.Node)
	}
}

// doubtOther has it seen which remediations run, where one that is said to be over, or not to be the one, says that it goes on: it
// was reset, or somebody has spoken in its name.
func (f *fleet) doubtOther(p api.RemediationProgress) {
	if !p.Ended {
		f.suspect()
	}
}

// maxRevision is more than anybody counts to, maxRunID bounds the ID of a run, in bytes.
const (
	maxRevision = 1 << 40
	maxRunID    = 100
)

// validate tells why a report makes no sense.
func validate(p health.Progress) error {
	if err := spec.NodeName(p.Node); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if p.RunID == "" || len(p.RunID) > maxRunID {
		return fmt.Errorf("runId: %.80q is not one", p.RunID)
	}
	if p.Revision < 0 || p.Revision > maxRevision {
		return fmt.Errorf("revision: %d is not one", p.Revision)
	}
	return nil
}
