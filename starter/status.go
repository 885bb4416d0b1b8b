package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/rules/period"
	"drydock/rules/spec"
)

type statusOptions struct {
	app       *app
	output    output
	requestor string
}

func newStatus(a *app) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status NODE",
		Short: "Show where the maintenance of a node is, and what it waits for",
		Long: `Show the maintenance of a node: its phase, what it waits for in words, the progress of its drain with every pod that
blocks it, the rungs of the escalation that were taken and the next one, its times and the latest messages to it.

If none is running, the latest one that ended is shown.`,
		Example: `  drydock status worker-01
  drydock status worker-01 --requestor ops -o json | jq -r .phase`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.register(cmd)
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", ofMaintenance)
	return cmd
}

func (o *statusOptions) run(ctx context.Context, node string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	t, note, err := o.pick(ctx, c, node)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(o.app.messages(&o.output), note)
	}
	v, err := c.Observe(ctx, t)
	if err != nil {
		return c.explain(err)
	}
	if !v.Running() && v.Status == nil {
		// The history of one that ended still answers, with more than its result.
		if status, err := c.LastStatus(ctx, v.Maintenance); err == nil {
			v.Status = status
		}
	}
	if v.Unanswered != nil {
		fmt.Fprintf(o.app.Stderr, "Warning: %s\n", v.Unanswered)
	}
	return o.output.write(o.app.Stdout, statusOf(v), func(w io.Writer) { renderStatus(w, v, c.now()) })
}

// pick finds the running maintenance, or else the one that ended last.
func (o *statusOptions) pick(ctx context.Context, c *connection, node string) (client.Maintenance, string, error) {
	f, note, missing := c.find(ctx, node, o.requestor)
	if missing == nil {
		return f.Maintenance, note, nil
	}
	if spec.NodeName(node) != nil {
		return client.Maintenance{}, "", missing
	}
	all, err := c.List(ctx, client.ListOptions{Node: node, Limit: 100})
	if err != nil {
		return client.Maintenance{}, "", c.explain(err)
	}
	all = slices.DeleteFunc(all, func(t client.Maintenance) bool { return o.requestor != "" && t.Requestor != o.requestor })
	if len(all) == 0 || slices.ContainsFunc(all, client.Maintenance.Running) {
		return client.Maintenance{}, "", missing
	}
	last := slices.MaxFunc(all, func(a, b client.Maintenance) int { return cmp.Compare(a.Closed.UnixNano(), b.Closed.UnixNano()) })
	return last, "No maintenance of " + node + " is running; this is the last one that ended.", nil
}

// endedStatus is the machine-readable status with what only the server knows: how the run ended.
type endedStatus struct {
	*api.Status
	Phase   api.Phase  `json:"phase,omitempty"`
	EndedAt *time.Time `json:"endedAt,omitempty"`
	Message string     `json:"message,omitempty"`
}

// statusOf is the workflow's own answer, or as much of it as is known without a worker.
func statusOf(v client.View) any {
	status := v.Status
	if status == nil {
		status = &api.Status{
			WorkflowID: v.WorkflowID, RunID: v.RunID, Spec: spec.Maintenance{Node: v.Node, Requestor: v.Requestor},
			Phase: v.Phase(), Since: v.Started,
		}
		if v.Result != nil {
			status.Transitions = v.Result.Transitions
		}
	}
	e := endedStatus{Status: status, Phase: v.Phase()}
	if !v.Running() {
		e.EndedAt, e.Message = &v.Closed, v.Message()
	}
	return e
}

func renderStatus(w io.Writer, v client.View, now time.Time) {
	head := newRows(w)
	head.add("Node:", v.Node)
	head.add("Requestor:", v.Requestor)
	renderWhy(head, v, now)
	renderWhere(head, v, now)
	head.add("Workflow:", v.WorkflowID)
	head.add("Run:", v.RunID)
	head.done()
	if v.Status != nil && v.Running() {
		renderBlockers(w, v.Status.Drain, now)
		renderStays(w, v.Status.Drain)
		renderEscalation(w, v.Status.Escalation, now)
	}
	if v.Status != nil {
		renderValidation(w, v.Status.Validation)
	}
	renderTransitions(w, v, now)
	if v.Status != nil {
		renderStates(w, v.Status.States, now)
		renderMessages(w, v.Status.Messages, now)
	}
}

func renderWhy(head rows, v client.View, now time.Time) {
	if v.Status == nil {
		return
	}
	m := v.Status.Spec
	for _, field := range []struct{ name, value string }{{"Reason:", m.Reason}, {"Ticket:", m.Ticket}, {"Owner:", m.Owner}} {
		if field.value != "" {
			head.add(field.name, field.value)
		}
	}
	if m.Type != "" && m.Type != spec.Planned {
		head.add("Type:", m.Type)
	}
	if m.Priority != 0 {
		head.add("Priority:", fmt.Sprint(m.Priority))
	}
	renderApproval(head, v.Status, now)
}

func renderWhere(head rows, v client.View, now time.Time) {
	switch {
	case !v.Running():
		head.add("Phase:", fmt.Sprintf("%s (ended %s, %s ago, after %s)", v.Phase(), clock(v.Closed, now), period.Age(now.Sub(v.Closed)), period.Age(v.Closed.Sub(v.Started))))
		if text := v.Message(); text != "" {
			head.add("Message:", text)
		}
		return
	case v.Status == nil:
		head.add("Phase:", fmt.Sprintf("unknown (started %s, %s ago)", clock(v.Started, now), period.Age(now.Sub(v.Started))))
		return
	}
	s := v.Status
	head.add("Phase:", fmt.Sprintf("%s (since %s, %s ago)", s.Phase, clock(s.Since, now), period.Age(now.Sub(s.Since))))
	if s.WaitingFor != "" {
		head.add("Waiting for:", s.WaitingFor)
	}
	if s.Failure != "" {
		head.add("Failure:", s.Failure)
	}
	if s.Attempt > 1 {
		head.add("Attempt:", fmt.Sprint(s.Attempt))
	}
	if len(s.Requestors) > 1 {
		head.add("Requestors:", requestorsText(s.Requestors, now))
	}
	head.add("Slot:", slotText(s.Slot, now))
	renderDrain(head, s, now)
	if s.StartedAt != nil {
		head.add("Work began:", clock(*s.StartedAt, now))
	}
	if s.ReadyDeadline != nil && s.Phase == api.Ready {
		head.add("Held until:", fmt.Sprintf("%s (%s left; then %s)", clock(*s.ReadyDeadline, now), period.Age(s.ReadyDeadline.Sub(now)), s.Spec.OnReadyTimeout))
	}
}

func requestorsText(requestors []api.RequestorStatus, now time.Time) string {
	texts := make([]string, len(requestors))
	for i, r := range requestors {
		texts[i] = r.Name
		if r.DoneAt != nil {
			texts[i] += fmt.Sprintf(" (done %s)", clock(*r.DoneAt, now))
		}
	}
	return strings.Join(texts, ", ")
}

func slotText(s *api.SlotStatus, now time.Time) string {
	switch {
	case s == nil:
		return "none"
	case s.GrantedAt == nil:
		return "asked for"
	default:
		return "granted " + clock(*s.GrantedAt, now)
	}
}

func renderTransitions(w io.Writer, v client.View, now time.Time) {
	transitions := v.Transitions()
	if len(transitions) == 0 {
		return
	}
	fmt.Fprintln(w, "\nPhases:")
	r := newRows(w, "  PHASE", "AT", "FOR", "MESSAGE")
	for i, t := range transitions {
		if i > 0 && transitions[i-1].Phase == t.Phase {
			// Something happened while the phase stayed the same.
			r.add("", clock(t.At, now), "", t.Message)
			continue
		}
		r.add("  "+string(t.Phase), clock(t.At, now), lasted(transitions[i:], now), t.Message)
	}
	r.done()
}

// lasted is how long the first phase was, or has been up to now.
func lasted(transitions []api.Transition, now time.Time) string {
	first := transitions[0]
	if first.Phase.Ended() {
		return ""
	}
	for _, next := range transitions[1:] {
		if next.Phase != first.Phase {
			return period.Age(next.At.Sub(first.At))
		}
	}
	return period.Age(now.Sub(first.At))
}

func renderMessages(w io.Writer, messages []api.Received, now time.Time) {
	if len(messages) == 0 {
		return
	}
	fmt.Fprintln(w, "\nMessages:")
	r := newRows(w, "  AT", "MESSAGE", "BY", "EFFECT", "COMMENT")
	for _, m := range messages {
		r.add("  "+clock(m.At, now), m.Name, m.By, m.Effect, m.Comment)
	}
	r.done()
}
