package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/activities/profile/facts"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/preflight"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/secret"
)

const file = `
intervals: {requeue: 1m}
instances:
  check:
  - {type: hasAnnotation, name: approved, config: {key: approved, value: "true"}}
  - {type: hasLabel, name: done, config: {key: done}}
  - {type: maxMaintenance, name: max, config: {max: 2}}
  - {type: clusterSemver, name: outdated, config: {key: version}}
  - {type: stagger, name: slowly, config: {duration: 1h, leaseName: l, leaseNamespace: default}}
  trigger:
  - {type: alterLabel, name: label, config: {key: reboot, value: "yes"}}
  - {type: alterAnnotation, name: unannotate, config: {key: approved, remove: true}}
  - {type: alterFinalizer, name: finalize, config: {key: example.com/f}}
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
  - {type: eviction, name: drain, config: {action: drain, forceEviction: true}}
  - {type: maintenance, name: maintain, config: {}}
  notify:
  - {type: slack, name: slack, config: {hook: "http://example.com", channel: c, message: "{{ .Node.Name }} {{ .State }} {{ .Profile.Last }}"}, schedule: {type: periodic, config: {interval: 1h}}}
profiles:
- name: p
  operational: {transitions: [{check: approved, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: max && slowly, trigger: label && drain && cordon, next: in-maintenance}]}
  in-maintenance: {enter: unannotate && finalize, notify: slack, transitions: [{check: done, trigger: uncordon, next: operational}]}
- name: q
  operational: {transitions: [{check: outdated, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: max, trigger: maintain, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: done, next: operational}]}
`

var since = time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.UTC)

// dock is a cluster with profiles.
type dock struct {
	*testing.T
	server *k8stest.Server
	acts   *Activities
	facts  *knownFacts
	mail   *mailbox
	counts *counted
	// freezes are in force.
	freezes int
	// slots and scheduler are what the scheduler says, knows what the profiles do.
	slots     api.SlotsHeld
	scheduler api.State
	knows     api.ProfilesState
}

type knownFacts struct {
	rules.Facts
	taken []check.Claim
	err   error
}

func (k *knownFacts) Gather(context.Context, check.Needs, []*corev1.Node) rules.Facts {
	f := k.Facts
	f.Leases = map[check.LeaseName]check.Lease{}
	for name, l := range k.Leases {
		f.Leases[name] = l
	}
	return f
}

func (k *knownFacts) Take(_ context.Context, claims []check.Claim) error {
	k.taken = append(k.taken, claims...)
	return k.err
}

type mailbox struct {
	sent []string
	err  error
}

func (m *mailbox) Send(_ context.Context, _ notice.Notice, message notice.Message, key string) error {
	m.sent = append(m.sent, key+": "+message.Text)
	return m.err
}

type counted struct {
	mu      sync.Mutex
	shown   []api.ProfileCount
	failed  []string
	entered []string
}

func (c *counted) Shown(counts []api.ProfileCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = counts
}
func (c *counted) Left()                 {}
func (c *counted) Failed(profile string) { c.failed = append(c.failed, profile) }
func (c *counted) Entered(_ context.Context, profile, node string) {
	c.entered = append(c.entered, profile+"/"+node)
}

func newDock(t *testing.T, nodes ...*corev1.Node) *dock {
	t.Helper()
	d := &dock{T: t, server: k8stest.New(), facts: &knownFacts{}, mail: &mailbox{}, counts: &counted{}}
	for _, n := range nodes {
		d.server.Set(n)
	}
	path := filepath.Join(t.TempDir(), "maintenance.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d.acts = &Activities{
		Nodes: k8s.NewWholeNodes(d.server.Client(t)), Home: execution.Namespace{ID: "home"}, File: &File{Path: path},
		Facts: d.facts, Sender: d.mail, Counts: d.counts,
		Temporal: activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{"profile-transition/p/n1/r": enums.WORKFLOW_EXECUTION_STATUS_RUNNING}),
	}
	asked, _ := d.acts.Temporal.(*mocks.Client)
	d.slots, d.knows = api.SlotsHeld{Held: []string{activitytest.RunID + "/1"}}, api.ProfilesState{UnderWay: []api.ProfileUnderWay{{Profile: "p", Node: "n1"}}}
	answers := func(answer func() any) func(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
		return func(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
			payloads, err := converter.GetDefaultDataConverter().ToPayloads(answer())
			return client.NewValue(payloads), err
		}
	}
	asked.On("QueryWorkflow", mock.Anything, api.SchedulerID(""), "", api.QuerySlotsHeld, mock.Anything).Return(answers(func() any { return d.slots }), nil)
	asked.On("QueryWorkflow", mock.Anything, api.SchedulerID(""), "", api.QueryState, mock.Anything).Return(answers(func() any { return d.scheduler }), nil)
	asked.On("QueryWorkflow", mock.Anything, api.ProfilesID(""), "", api.QueryState).Return(answers(func() any { return d.knows }), nil)
	asked.On("QueryWorkflow", mock.Anything, api.SchedulerID(""), "", api.QuerySummary).Return(func(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
		value := &mocks.Value{}
		value.On("Get", mock.Anything).Return(func(into any) error {
			into.(*api.Summary).Freezes = d.freezes
			return nil
		})
		return value, nil
	}, nil)
	return d
}

// node is one whose profiles are in states since then.
func node(name string, profiles map[string]state.State, options ...activitytest.NodeOption) *corev1.Node {
	data := state.Data{Profiles: map[string]state.Profile{}, Notifications: map[string]time.Time{}}
	var names []string
	var states []state.State
	for _, profile := range []string{"p", "q"} {
		if s, there := profiles[profile]; there {
			names, states = append(names, profile), append(states, s)
			data.Profiles[profile] = state.Profile{Transition: since, Current: s, Previous: s}
		}
	}
	text, _ := data.Write()
	return activitytest.Node(name, append([]activitytest.NodeOption{func(n *corev1.Node) {
		n.UID = types.UID("u-" + name)
		n.Labels[state.ProfileLabel], n.Labels[state.StateLabel] = strings.Join(names, "--"), string(state.Crucial(states))
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[state.DataAnnotation] = text
	}}, options...)...)
}

func annotated(key, value string) activitytest.NodeOption {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func (d *dock) data(name string) state.Data {
	d.Helper()
	data, err := state.Read(d.server.Node(name).Annotations[state.DataAnnotation])
	if err != nil {
		d.Fatal(err)
	}
	return data
}

func transition(from, to state.State, triggers ...string) CarryInput {
	return CarryInput{RunID: activitytest.RunID, ProfileTransitionInput: api.ProfileTransitionInput{
		Profile: "p", Node: "n1", UID: "u-n1", From: from, To: to, Since: since, Triggers: triggers,
	}}
}

func TestATransitionIsOneWrite(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}, activitytest.Cordoned, annotated("approved", "true")))
	in := transition(state.Maintenance, state.Operational, "label", "unannotate", "finalize", "uncordon")
	carried, err := activitytest.Call(t, d.acts.CarryTransition, in)
	if err != nil || carried.Moved.IsZero() {
		t.Fatalf("%+v, %v", carried, err)
	}
	n := d.server.Node("n1")
	if n.Labels["reboot"] != "yes" || n.Annotations["approved"] != "" || len(n.Finalizers) != 1 || n.Spec.Unschedulable || n.Labels[state.StateLabel] != "operational" {
		t.Errorf("%+v %+v", n.ObjectMeta, n.Spec)
	}
	if p := d.data("n1").Profiles["p"]; p.Current != state.Operational || p.Previous != state.Maintenance || !p.Transition.Equal(carried.Moved) {
		t.Errorf("%+v, moved %s", p, carried.Moved)
	}
	if writes := d.server.Requests("PATCH"); len(writes) != 1 {
		t.Errorf("%q", writes)
	}
	again, err := activitytest.Call(t, d.acts.CarryTransition, in)
	if err != nil || !again.Moved.Equal(carried.Moved) || len(d.server.Requests("PATCH")) != 1 {
		t.Errorf("a step whose answer was lost: %+v, %v", again, err)
	}
}

func TestWhatWasDecidedForAnotherStateIsNotCarriedOut(t *testing.T) {
	for name, change := range map[string]func(*CarryInput, *corev1.Node){
		"another state":        func(in *CarryInput, _ *corev1.Node) { in.From = state.Required },
		"another time":         func(in *CarryInput, _ *corev1.Node) { in.Since = since.Add(-time.Second) },
		"another node":         func(in *CarryInput, _ *corev1.Node) { in.UID = "other" },
		"no node":              func(in *CarryInput, _ *corev1.Node) { in.Node = "n9" },
		"no such trigger":      func(in *CarryInput, _ *corev1.Node) { in.Triggers = []string{"label", "nothing"} },
		"no profile":           func(in *CarryInput, _ *corev1.Node) { in.Profile = "x" },
		"a broken annotation":  func(_ *CarryInput, n *corev1.Node) { n.Annotations[state.DataAnnotation] = "{" },
		"a Lease that is gone": func(in *CarryInput, _ *corev1.Node) { in.Claims = []check.Claim{{Holder: "n1"}} },
	} {
		n := node("n1", map[string]state.State{"p": state.Maintenance})
		in := transition(state.Maintenance, state.Operational, "label")
		change(&in, n)
		d := newDock(t, n)
		if len(in.Claims) > 0 {
			d.facts.err = fmt.Errorf("default/l-0: %w", facts.ErrTaken)
		}
		carried, err := activitytest.Call(t, d.acts.CarryTransition, in)
		if err != nil || carried.Refused == "" || len(d.server.Requests("PATCH")) != 0 {
			t.Errorf("%s: %+v, %v, %q", name, carried, err, d.server.Requests("PATCH"))
		}
	}
}

func TestADrainTakesAHolderAndGivesItBack(t *testing.T) {
	stale := activitytest.Marked(activitytest.WorkflowID, "an-earlier-run")
	d := newDock(t, node("n1", map[string]state.State{"p": state.Required}, stale))
	in := transition(state.Required, state.Maintenance, "label", "drain", "finalize")
	carried, err := activitytest.Call(t, d.acts.CarryTransition, in)
	if err != nil || carried.Do != DoDrain || carried.Next != 1 || !carried.Force || carried.Cordoned.IsZero() {
		t.Fatalf("%+v, %v", carried, err)
	}
	n := d.server.Node("n1")
	mark, err := k8s.MarkOf(n)
	if err != nil || len(mark.Holders) != 1 || !mark.HeldBy(activitytest.WorkflowID, activitytest.RunID) || mark.WantsCordon() || !n.Spec.Unschedulable || n.Labels["reboot"] != "yes" {
		t.Fatalf("%+v, %v, %+v", mark, err, n.Spec)
	}
	if d.data("n1").Profiles["p"].Current != state.Required {
		t.Error("it moved before its triggers were done")
	}
	in.Next, in.Held = 2, true
	if carried, err = activitytest.Call(t, d.acts.CarryTransition, in); err != nil || carried.Moved.IsZero() {
		t.Fatalf("%+v, %v", carried, err)
	}
	n = d.server.Node("n1")
	if mark, _ := k8s.MarkOf(n); len(mark.Holders) != 0 || !n.Spec.Unschedulable || n.Labels[state.StateLabel] != "in-maintenance" || n.Labels[api.PhaseLabel] != "" {
		t.Errorf("%+v, %+v", mark, n)
	}
	if len(d.counts.entered) != 1 {
		t.Errorf("entered %q", d.counts.entered)
	}
}

func TestATransitionThatIsGivenUpHoldsNothing(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Required}, activitytest.Marked(activitytest.WorkflowID, activitytest.RunID)))
	give := func(ctx context.Context, in GiveUpInput) (bool, error) { return true, d.acts.GiveUpTransition(ctx, in) }
	if _, err := activitytest.Call(t, give, GiveUpInput{CarryInput: transition(state.Required, state.Maintenance), Why: "it was cancelled"}); err != nil {
		t.Fatal(err)
	}
	if mark, _ := k8s.MarkOf(d.server.Node("n1")); len(mark.Holders) != 0 || len(d.counts.failed) != 1 {
		t.Errorf("%+v, %q", mark, d.counts.failed)
	}
}

func TestTheCordonOfAMaintenanceStays(t *testing.T) {
	held := activitytest.MarkedBy(k8s.Holder{WorkflowID: "node-maintenance/n1/ops", RunID: "r", Namespace: "home", Requestor: "ops", Cordon: true})
	d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}, activitytest.Cordoned, held))
	if _, err := activitytest.Call(t, d.acts.CarryTransition, transition(state.Maintenance, state.Operational, "uncordon")); err != nil {
		t.Fatal(err)
	}
	n := d.server.Node("n1")
	if mark, _ := k8s.MarkOf(n); !n.Spec.Unschedulable || !mark.Cordoned {
		t.Errorf("%+v %+v", n.Spec, mark)
	}
}

func TestTheTriggersOnEnteringAStateRunOnce(t *testing.T) {
	n := node("n1", map[string]state.State{"p": state.Maintenance}, annotated("approved", "true"))
	n.Annotations[state.DataAnnotation] = strings.Replace(n.Annotations[state.DataAnnotation], `"Previous":"in-maintenance"`, `"Previous":"maintenance-required"`, 1)
	d := newDock(t, n)
	in := transition(state.Maintenance, state.Maintenance, "unannotate", "finalize")
	in.Enter = true
	carried, err := activitytest.Call(t, d.acts.CarryTransition, in)
	p := d.data("n1").Profiles["p"]
	if err != nil || carried.Moved.IsZero() || p.Previous != state.Maintenance || !p.Transition.Equal(since) {
		t.Fatalf("%+v, %v, %+v", carried, err, p)
	}
	if again, err := activitytest.Call(t, d.acts.CarryTransition, in); err != nil || again.Moved.IsZero() || len(d.server.Requests("PATCH")) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
}

func (d *dock) evaluate(in EvaluateInput) Evaluated {
	d.Helper()
	in.Room, in.Forward, in.Notices = 100, 100, 100
	result, err := activitytest.Call(d.T, d.acts.EvaluateProfiles, in)
	if err != nil {
		d.Fatal(err)
	}
	return result
}

func TestAnEvaluationBringsTheAnnotationUpToDateFirst(t *testing.T) {
	n := activitytest.Node("n1", activitytest.Labelled(state.ProfileLabel, "p--unknown"), func(n *corev1.Node) {
		n.UID, n.Annotations = "u-n1", map[string]string{"approved": "true"}
	})
	d := newDock(t, n)
	result := d.evaluate(EvaluateInput{})
	if len(result.Begin) != 1 {
		t.Fatalf("%+v", result)
	}
	b, p := result.Begin[0], d.data("n1").Profiles["p"]
	if b.From != state.Operational || b.To != state.Required || b.Check != "approved" || !b.Since.Equal(p.Transition) || b.Validate() != nil {
		t.Errorf("%+v, %+v, %v", b, p, b.Validate())
	}
	if d.server.Node("n1").Labels[state.StateLabel] != "operational" || len(d.data("n1").Profiles) != 1 {
		t.Errorf("%+v", d.server.Node("n1"))
	}
}

func TestALimitCountsWhatIsOnItsWay(t *testing.T) {
	required := map[string]state.State{"q": state.Required}
	d := newDock(t, node("n1", required), node("n2", required), node("n3", required), node("n4", required))
	ended := UnderWay{Ref: Ref{"q", "n3"}, UID: "u-n3", RunID: "r", To: state.Maintenance, Began: time.Now(), Ended: true, EndedAt: time.Now()}
	for name, c := range map[string]struct {
		change         func(*UnderWay)
		begin, settled int
	}{
		"the node does not show it yet": {func(u *UnderWay) { u.Moved = time.Now() }, 1, 0},
		"it was not carried out":        {func(*UnderWay) {}, 2, 0},
		"it was lost a moment ago":      {func(u *UnderWay) { u.Lost = true }, 1, 0},
		"it was lost long ago":          {func(u *UnderWay) { u.Lost, u.EndedAt = true, time.Now().Add(-time.Hour) }, 2, 1},
		"somebody has written over it":  {func(u *UnderWay) { u.Moved, u.EndedAt = time.Now(), time.Now().Add(-time.Hour) }, 2, 1},
		"it was for another node":       {func(u *UnderWay) { u.Moved, u.UID = time.Now(), "other" }, 2, 0},
		"it runs for another node":      {func(u *UnderWay) { u.Ended, u.UID = false, "other" }, 1, 0},
	} {
		u := ended
		c.change(&u)
		if result := d.evaluate(EvaluateInput{UnderWay: api.List[UnderWay]{u}}); len(result.Begin) != c.begin || len(result.Settled) != c.settled {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

func TestNotificationsThatAreDueComeFirst(t *testing.T) {
	n := node("n1", map[string]state.State{"p": state.Maintenance}, activitytest.Labelled("done", "yes"))
	d := newDock(t, n)
	result := d.evaluate(EvaluateInput{})
	if len(result.Notices) != 1 || len(result.Begin) != 0 {
		t.Fatalf("%+v", result)
	}
	notice := result.Notices[0]
	next := d.evaluate(EvaluateInput{Sending: api.List[Notice]{notice}})
	if len(next.Notices) != 0 || len(next.Begin) != 1 {
		t.Errorf("while it is sent: %+v", next)
	}
	if _, err := activitytest.Call(t, d.acts.SendProfileNotice, notice); err != nil || len(d.mail.sent) != 1 || !strings.HasSuffix(d.mail.sent[0], ": n1 in-maintenance in-maintenance") {
		t.Errorf("%v, %q", err, d.mail.sent)
	}
	if at := d.data("n1").Notifications["slack"]; !at.Equal(notice.At) {
		t.Errorf("%s, want %s", at, notice.At)
	}
}

func TestAReceiverThatIsBusyIsLeftAlone(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: 0, 30 * time.Second: 30 * time.Second, 90 * time.Hour: longestWait} {
		d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}))
		d.mail.err = notify.Reported(t.Context(), "slack", &secret.Redactor{}, errors.New("it is busy"), asked)
		_, err := activitytest.Call(t, d.acts.SendProfileNotice, Notice{Ref: Ref{"p", "n1"}, UID: "u-n1", Instance: "slack", At: time.Now()})
		var failure *temporal.ApplicationError
		if !errors.As(err, &failure) || failure.NextRetryDelay() != want || failure.NonRetryable() || !strings.Contains(failure.Message(), "it is busy") {
			t.Errorf("asked for %s: %v, next in %s", asked, err, failure.NextRetryDelay())
		}
	}
}

func TestANotificationOfANodeThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}))
	d.server.Deny("patch", "nodes")
	_, err := activitytest.Call(t, d.acts.SendProfileNotice, Notice{Ref: Ref{"p", "n1"}, UID: "u-n1", Instance: "slack", At: time.Now()})
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || failure.NonRetryable() || len(d.mail.sent) != 0 {
		t.Errorf("%v, sent %q", err, d.mail.sent)
	}
}

func TestANotificationThatIsNotTakenKeepsNoNode(t *testing.T) {
	n := node("n1", map[string]state.State{"p": state.Maintenance}, activitytest.Labelled("done", "yes"))
	d := newDock(t, n)
	late := Notice{Ref: Ref{"p", "n1"}, UID: "u-n1", Instance: "slack", At: time.Now().Add(-10 * time.Minute)}
	if result := d.evaluate(EvaluateInput{Sending: api.List[Notice]{late}}); len(result.Notices) != 0 || len(result.Begin) != 1 {
		t.Errorf("%+v", result)
	}
	many := api.List[Notice]{}
	for i := range maxOfInstance {
		many = append(many, Notice{Ref: Ref{"p", fmt.Sprintf("m%d", i)}, Instance: "slack", At: time.Now()})
	}
	if result := d.evaluate(EvaluateInput{Sending: many}); len(result.Notices) != 0 || len(result.Begin) != 1 {
		t.Errorf("where there is no room: %+v", result)
	}
	if at := d.data("n1").Notifications["slack"]; !at.IsZero() {
		t.Errorf("it counts as sent at %s", at)
	}
}

func TestANodeThatCannotBeWrittenKeepsNoOther(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"q": state.Required}),
		node("n2", map[string]state.State{"q": state.Operational}, func(n *corev1.Node) { delete(n.Labels, state.StateLabel) }))
	d.server.Deny("patch", "nodes")
	if result := d.evaluate(EvaluateInput{}); len(result.Begin) != 1 || result.Begin[0].Node != "n1" {
		t.Errorf("%+v", result)
	}
}

func TestTheWayBackHasRoom(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"q": state.Required}),
		node("n2", map[string]state.State{"q": state.Maintenance}, activitytest.Labelled("done", "yes")))
	result, err := activitytest.Call(t, d.acts.EvaluateProfiles, EvaluateInput{Room: 10, Notices: 10})
	if err != nil || len(result.Begin) != 1 || result.Begin[0].To != state.Operational {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestTheMarkOfATransitionThatWasTerminatedGoes(t *testing.T) {
	id := api.ProfileTransitionID("", "p", "n1")
	for run, stays := range map[string]bool{"r": true, "gone": false} {
		mark := annotated(api.HoldersAnnotation, fmt.Sprintf(`{"holders":[{"workflowId":%q,"runId":%q,"namespace":"home","requestor":"profile-p"}]}`, id, run))
		d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}, annotated("approved", "true"), mark))
		d.evaluate(EvaluateInput{})
		if held, _ := k8s.MarkOf(d.server.Node("n1")); (len(held.Holders) == 1) != stays {
			t.Errorf("run %s: %+v", run, held)
		}
	}
}

func TestTheCordonOfADrainIsPutBack(t *testing.T) {
	ref := Ref{Profile: "p", Node: "n1"}
	mark := annotated(api.HoldersAnnotation, fmt.Sprintf(`{"holders":[{"workflowId":%q,"runId":"r","namespace":"home","requestor":"profile-p"}]}`,
		api.ProfileTransitionID("", "p", "n1")))
	for stopped, cordoned := range map[bool]bool{false: true, true: false} {
		due := node("n2", map[string]state.State{"p": state.Operational}, annotated("approved", "true"))
		d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}, mark), due)
		d.evaluate(EvaluateInput{UnderWay: []UnderWay{{Ref: ref, UID: "u-n1", RunID: "r", To: state.Required, Began: time.Now(), Stopped: stopped}}})
		if d.server.Node("n1").Spec.Unschedulable != cordoned {
			t.Errorf("stopped %v: unschedulable is not %v", stopped, cordoned)
		}
	}
}

const maintenanceRun = "11111111-2222-3333-4444-555555555555"

func TestAMaintenanceIsLeftWithItsState(t *testing.T) {
	mark := func(profile string) activitytest.NodeOption {
		requestor := api.ProfileRequestor(profile)
		return annotated(api.HoldersAnnotation, fmt.Sprintf(
			`{"holders":[{"workflowId":%q,"runId":%q,"namespace":"home","requestor":%q}]}`, api.MaintenanceID("", "n1", requestor), maintenanceRun, requestor))
	}
	d := newDock(t, node("n1", map[string]state.State{"q": state.Maintenance}, mark("q"), activitytest.Labelled("done", "yes")))
	if result := d.evaluate(EvaluateInput{}); len(result.Begin) != 1 || result.Begin[0].Maintained != maintenanceRun || len(result.Leave) != 0 {
		t.Errorf("%+v", result)
	}
	d = newDock(t, node("n1", map[string]state.State{"p": state.Operational}, mark("q")))
	left := Left{Node: "n1", Requestor: api.ProfileRequestor("q"), RunID: maintenanceRun}
	if result := d.evaluate(EvaluateInput{}); len(result.Leave) != 1 || result.Leave[0] != left {
		t.Errorf("%+v", result)
	}
	d = newDock(t, node("n1", map[string]state.State{"p": state.Operational}))
	if result := d.evaluate(EvaluateInput{Leaving: []Left{left}}); len(result.Gone) != 1 || len(result.Leave) != 0 {
		t.Errorf("%+v", result)
	}
	// A maintenance that validates the node once its profile has moved on is not cut short.
	d = newDock(t, node("n1", map[string]state.State{"q": state.Operational}, mark("q")))
	done := left
	done.Done = true
	if result := d.evaluate(EvaluateInput{}); len(result.Leave) != 1 || result.Leave[0] != done {
		t.Errorf("%+v", result)
	}
	d = newDock(t, node("n1", map[string]state.State{"p": state.Operational}, mark("q")))
	if result := d.evaluate(EvaluateInput{Leaving: []Left{done}}); len(result.Gone) != 0 || len(result.Leave) != 1 || result.Leave[0] != left {
		t.Errorf("%+v", result)
	}
}

func TestAFreezeLetsNodesComeBackOnly(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"q": state.Required}),
		node("n2", map[string]state.State{"q": state.Maintenance}, activitytest.Labelled("done", "yes")))
	d.freezes = 1
	if result := d.evaluate(EvaluateInput{}); len(result.Begin) != 1 || result.Begin[0].Node != "n2" {
		t.Errorf("%+v", result)
	}
	d.freezes = 0
	if result := d.evaluate(EvaluateInput{}); len(result.Begin) != 2 {
		t.Errorf("%+v", result)
	}
}

func TestWhatRunsForAProfileThatWasTakenAwayIsStopped(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}))
	runs := UnderWay{Ref: Ref{"q", "n1"}, UID: "u-n1", RunID: "r", To: state.Maintenance, Began: time.Now()}
	if result := d.evaluate(EvaluateInput{UnderWay: api.List[UnderWay]{runs}}); len(result.Stop) != 1 || result.Stop[0] != runs.Ref {
		t.Errorf("%+v", result)
	}
	stays := runs
	stays.Profile, stays.To = "p", state.Operational
	stopped := runs
	stopped.Stopped = true
	d = newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}), node("n2", map[string]state.State{"p": state.Operational}, annotated("approved", "true")))
	if result := d.evaluate(EvaluateInput{UnderWay: api.List[UnderWay]{stays, stopped}}); len(result.Stop) != 0 {
		t.Errorf("%+v", result)
	}
}

// Missing permissions are reported before anything needs them, once, with the commands that grant them.
func TestMissingPermissionsAreReportedAtOnce(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}))
	d.server.Deny("patch", "leases")
	d.server.Deny("delete", "pods")
	result := d.evaluate(EvaluateInput{})
	if result.Denied == nil || result.isEmpty() {
		t.Fatalf("%+v", result)
	}
	for may, by := range map[string]string{
		"patch leases in API group coordination.k8s.io (namespace default)": "`kubectl apply -f deploy/kubernetes/rbac-profiles.yaml`",
		"delete pods in the core API group":                                 "`kubectl apply -f deploy/kubernetes/rbac-delete-pods.yaml`",
	} {
		if !slices.ContainsFunc(*result.Denied, func(u preflight.Ungranted) bool { return u.Permissions == may && strings.HasPrefix(u.By, by) }) {
			t.Errorf("%q\nlacks %s by %s", *result.Denied, may, by)
		}
	}
	d.server.Set(node("n1", map[string]state.State{"p": state.Operational}, annotated("approved", "true")))
	if known := d.evaluate(EvaluateInput{Denied: *result.Denied}); known.Denied != nil || len(known.Begin) != 1 {
		t.Errorf("%+v", known)
	}
}

// A worker whose account may do nothing reports everything that grants something.
func TestAllMissingPermissionsAreReported(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}))
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`)
		return true
	}
	config, _ := d.acts.File.Read()
	result := d.evaluate(EvaluateInput{})
	if result.Denied == nil {
		t.Fatal("nothing is missing")
	}
	text := fmt.Sprint(*result.Denied)
	for _, need := range config.Permissions(nil) {
		resource := need
		resource.Verb = ""
		if !strings.Contains(text, resource.String()) || !strings.Contains(text, need.Granting()) {
			t.Errorf("it lacks %s by %s:\n%s", need, need.Granting(), text)
		}
	}
	if len(*result.Denied) != 3 {
		t.Errorf("%d commands: %s", len(*result.Denied), text)
	}
}

// A question that is not answered does not keep nodes from being evaluated, and is not asked again with each evaluation.
func TestAQuestionForPermissionsThatIsNotAnswered(t *testing.T) {
	const longerThanAllowed = 4 * askWithin
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			k8stest.Respond(w, k8stest.DeniedBody("create", "selfsubjectaccessreviews", ""))
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such luck", http.StatusInternalServerError)
		},
		"a hang": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // until then a client that goes is not noticed
			select {
			case <-r.Context().Done():
			case <-time.After(longerThanAllowed):
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}, annotated("approved", "true")))
			d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
					return false
				}
				answer(w, r)
				return true
			}
			known := EvaluateInput{Denied: []preflight.Ungranted{{Permissions: "patch leases"}}}
			began := time.Now()
			if result := d.evaluate(known); len(result.Begin) != 1 || result.Denied != nil {
				t.Errorf("%+v", result)
			}
			if took := time.Since(began); took >= longerThanAllowed {
				t.Errorf("it took %s", took)
			}
			if len(d.server.Requests("selfsubjectaccessreviews")) == 0 {
				t.Fatal("nothing was asked")
			}
			asked := d.acts.asked.at // requests that were given up may still arrive
			for range 3 {
				if result := d.evaluate(known); len(result.Begin) != 1 || result.Denied != nil {
					t.Errorf("%+v", result)
				}
			}
			if again := d.acts.asked.at; !again.Equal(asked) {
				t.Errorf("asked again after %s", again.Sub(asked))
			}
			d.acts.asked.at = time.Now().Add(-AskAgain)
			d.server.Handle = nil
			if result := d.evaluate(known); result.Denied == nil || len(*result.Denied) != 0 {
				t.Errorf("not asked again after %s: %+v", AskAgain, result)
			}
		})
	}
}

// Once they are granted, that is reported too.
func TestGrantedPermissionsAreReported(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}))
	if result := d.evaluate(EvaluateInput{Denied: []preflight.Ungranted{{Permissions: "patch leases"}}}); result.Denied == nil || len(*result.Denied) != 0 {
		t.Errorf("%+v", result)
	}
}

func TestABadFileLeavesTheLastGoodOne(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}, annotated("approved", "true")))
	if result := d.evaluate(EvaluateInput{}); len(result.Begin) != 1 {
		t.Fatalf("%+v", result)
	}
	if err := os.WriteFile(d.acts.File.Path, []byte("intervals: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := d.evaluate(EvaluateInput{})
	if result.Problem == nil || !strings.Contains(*result.Problem, "intervals.requeue") {
		t.Fatalf("%+v", result)
	}
	if again := d.evaluate(EvaluateInput{Problem: *result.Problem}); len(again.Begin) != 1 {
		t.Errorf("%+v", again)
	}
	if err := os.Remove(d.acts.File.Path); err != nil {
		t.Fatal(err)
	}
	if gone := d.evaluate(EvaluateInput{Problem: *result.Problem}); gone.Problem == nil || !strings.Contains(*gone.Problem, "profiles.file") {
		t.Errorf("%+v", gone)
	}
}

func TestACheckThatFailsIsReportedOnce(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"p": state.Operational}, annotated("approved", "true")),
		node("n2", map[string]state.State{"q": state.Operational}), node("n3", map[string]state.State{"q": state.Operational}, activitytest.Labelled("version", "1.2.3")))
	d.acts.Events = nodeevent.Recorder{Client: d.server.Client(t), On: true}
	for range 2 {
		if result := d.evaluate(EvaluateInput{}); len(result.Begin) != 1 || result.Begin[0].Node != "n1" {
			t.Fatalf("%+v", result)
		}
	}
	if events := d.server.Requests("POST /api/v1/namespaces/default/events"); len(events) != 1 {
		t.Errorf("%q", events)
	}
	i := slices.IndexFunc(d.counts.shown, func(c api.ProfileCount) bool { return c.Profile == "q" })
	if i < 0 || d.counts.shown[i].Nodes != 2 || d.counts.shown[i].Failing != 1 {
		t.Errorf("%+v", d.counts.shown)
	}
	config, _ := d.acts.File.Read()
	all, err := decidedNow(t, d, config)
	if err != nil {
		t.Fatal(err)
	}
	var report api.ProfileReport
	list(&report, all, api.ProfileReportInput{Profile: "q"})
	if shown := report.Nodes[0].Profiles[0]; fmt.Sprint(shown.Failing) != "[outdated]" || len(shown.Waiting) != 0 || report.Nodes[1].Profiles[0].Failing != nil {
		t.Errorf("%+v", report.Nodes)
	}
}

func TestReportsSayWhatKeepsNodes(t *testing.T) {
	d := newDock(t, node("n1", map[string]state.State{"q": state.Maintenance}), node("n2", map[string]state.State{"p": state.Operational}),
		activitytest.Node("n3", activitytest.Labelled(state.ProfileLabel, "p"), func(n *corev1.Node) { n.Annotations = map[string]string{state.DataAnnotation: "{"} }))
	var report api.ProfileReport
	config, _ := d.acts.File.Read()
	all, err := decidedNow(t, d, config)
	if err != nil {
		t.Fatal(err)
	}
	list(&report, all, api.ProfileReportInput{Limit: 2})
	if len(report.Nodes) != 2 || report.Next != "n2" || fmt.Sprint(report.Nodes[0].Profiles[0].Waiting) != "[done]" {
		t.Errorf("%+v", report)
	}
	report = api.ProfileReport{}
	list(&report, all, api.ProfileReportInput{After: report.Next, State: state.Operational})
	if len(report.Nodes) != 1 || report.Nodes[0].Node != "n2" || report.Next != "" {
		t.Errorf("%+v", report)
	}
	held := rules.Evaluated{State: state.Maintenance, Transitions: []rules.Considered{
		{Check: "a && !(b || c)", Checks: []rules.Outcome{{Instance: "a", Result: check.Result{Holds: true}}, {Instance: "b", Result: check.Result{Holds: true}}, {Instance: "c"}}},
		{Check: "c && d", Checks: []rules.Outcome{{Instance: "c"}, {Instance: "d", Result: check.Result{Error: "away"}}}},
	}}
	if got := fmt.Sprint(waiting(held)); got != "[!b c]" {
		t.Errorf("it waits for %s", got)
	}
	report = api.ProfileReport{}
	list(&report, all, api.ProfileReportInput{After: "n2"})
	if len(report.Nodes) != 1 || !strings.Contains(report.Nodes[0].Problem, "cannot be read") {
		t.Errorf("%+v", report)
	}
}

func decidedNow(t *testing.T, d *dock, config *rules.Config) (all []rules.Evaluation, err error) {
	err = activitytest.Execute(t, activitytest.Environment(), func(ctx context.Context) error {
		all, err = d.acts.decided(ctx, config, api.ProfilesState{}, time.Now())
		return err
	})
	return all, err
}
