package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/clusterapi"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/doctor"
)

// HealInput asks for one finding to be healed.
type HealInput struct {
	Names
	Finding doctor.Finding `json:"finding"`
	By      string         `json:"by"`
	Comment string         `json:"comment,omitempty"`
	// SignalRequest, SignalRelease and SignalChanged are what workers of earlier versions need.
	SignalRequest string `json:"signalRequest"`
	SignalRelease string `json:"signalRelease"`
	SignalChanged string `json:"signalChanged"`
}

// About implements caller.Input.
func (in HealInput) About() caller.Subject { return caller.Subject{Scheduler: in.Scheduler} }

// why is what a record says of the reason.
func (in HealInput) why() string {
	text := in.Finding.Text
	if in.Comment != "" {
		text += " (" + in.Comment + ")"
	}
	return text
}

// release is the payload of a slot's release, with who did it and why.
func (in HealInput) release(requestID string) (json.RawMessage, error) {
	return json.Marshal(map[string]string{"requestId": requestID, "by": bounds.Cut(in.By, 253), "why": bounds.Cut(in.why(), 1024)})
}

// schedulerWithin is how long a doctor waits for a scheduler to be started and to know who holds what.
const schedulerWithin = time.Minute

// errNoLonger: what was found is not so any more, and nothing was done.
var errNoLonger = errors.New("it is not so any more: nothing was done")

// Heal heals one finding, unless it is not so any more, and says what it did. Each step looks again before it acts, and
// is idempotent.
func (d *Activities) Heal(ctx context.Context, in HealInput) (string, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	did, err := d.heal(ctx, in)
	if errors.Is(err, errNoLonger) {
		return err.Error(), nil
	}
	return did, failure.OrCause(ctx, failure.Translate(ctx, d.Client, err))
}

func (d *Activities) heal(ctx context.Context, in HealInput) (string, error) {
	switch in.Finding.Fix {
	case doctor.AwaitScheduler:
		return d.awaitScheduler(ctx, in)
	case doctor.ReleaseMark:
		return d.releaseMark(ctx, in)
	case doctor.WithdrawRequests:
		return d.withdraw(ctx, in)
	case doctor.ReleaseSlot:
		return d.releaseSlot(ctx, in)
	case doctor.RequestSlot:
		return d.requestSlot(ctx, in)
	case doctor.RestoreMark:
		return d.restoreMark(ctx, in)
	case doctor.CleanNode:
		return d.cleanNode(ctx, in)
	case doctor.HideConditions:
		return d.hideConditions(ctx, in)
	case doctor.ResumeMachine:
		return resumeMachine(ctx, d, in)
	default:
		return "", fmt.Errorf("there is no fix %q", in.Finding.Fix)
	}
}

// event records on the node what was done; without a UID it first reads the node's.
func (d *Activities) event(ctx context.Context, in HealInput, uid types.UID, did string) {
	if uid == "" {
		node, err := d.Client.CoreV1().Nodes().Get(ctx, in.Finding.Node, metav1.GetOptions{})
		if err != nil {
			return
		}
		uid = node.UID
	}
	d.Events.Record(ctx, in.Finding.Node, uid, nodeevent.Event{
		Reason: api.EventHealed, Key: in.Finding.Key(),
		Message: fmt.Sprintf("%s; %s, by %s", in.why(), did, in.By),
	})
}

func (d *Activities) awaitScheduler(ctx context.Context, in HealInput) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, schedulerWithin)
	defer cancel()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		s, err := d.runs().scheduler(ctx, in.Names)
		if err == nil && s.Running && s.Unanswered == "" && !s.Rebuilding {
			return fmt.Sprintf("the scheduler runs again, and %d hold a slot", len(s.Holders)), nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return "", temporal.NewNonRetryableApplicationError(fmt.Sprintf(
				"the scheduler did not come back within %s: see the workers' logs", schedulerWithin), api.ErrorNoScheduler, nil)
		}
	}
}

// releaseMark takes a dead run's mark off as the maintenance itself would have done.
func (d *Activities) releaseMark(ctx context.Context, in HealInput) (string, error) {
	f := in.Finding
	if err := d.dead(ctx, in); err != nil {
		return "", err
	}
	released, err := release(ctx, d, f)
	if err != nil {
		return "", err
	}
	did := "released the mark"
	switch {
	case released.Gone:
		return "the node is gone, and its mark with it", nil
	case released.Foreign:
		return "the mark was gone already", nil
	case len(released.OtherHolders) > 0:
		did += fmt.Sprintf("; the node stays out of service for %v", released.OtherHolders)
	case released.Uncordoned:
		did += " and uncordoned the node"
	}
	if len(released.Differences) > 0 {
		did += "; the mark and its maintenance's history disagree about " + strings.Join(released.Differences, "; ")
	}
	d.event(ctx, in, released.UID, did)
	return did, left(d.Client, f).WithdrawLeft(ctx)
}

func (d *Activities) withdraw(ctx context.Context, in HealInput) (string, error) {
	f := in.Finding
	if err := d.dead(ctx, in); err != nil {
		return "", err
	}
	if err := left(d.Client, f).WithdrawLeft(ctx); err != nil {
		return "", err
	}
	const did = "withdrew the EvictionRequests"
	d.event(ctx, in, "", did)
	return did, nil
}

// left are the EvictionRequests of what a finding is about.
func left(client kube.Interface, f doctor.Finding) k8s.EvictionRequests {
	return k8s.EvictionRequests{Client: client, Node: f.Node, WorkflowID: f.WorkflowID, RunID: f.RunID}
}

// releaseSlot frees a slot that nobody holds. The mark goes first, which fences evictions of a dead maintenance.
func (d *Activities) releaseSlot(ctx context.Context, in HealInput) (string, error) {
	f := in.Finding
	released := k8s.Released{Foreign: true}
	if f.Kind == doctor.SlotStale {
		slot, err := d.slot(ctx, in)
		if err != nil {
			return "", err
		}
		if slot.Wants {
			return "", errNoLonger
		}
	} else {
		if err := d.dead(ctx, in); err != nil {
			return "", err
		}
		var err error
		if released, err = release(ctx, d, f); err != nil {
			return "", err
		}
	}
	payload, err := in.release(f.RequestID)
	if err != nil {
		return "", err
	}
	if err := caller.Signal(ctx, d.Temporal, in.Scheduler, "", api.SignalSlotRelease, payload); err != nil {
		return "", fmt.Errorf("signalling %s to %s: %w", api.SignalSlotRelease, in.Scheduler, err)
	}
	did := "gave the slot back"
	if f.Kind == doctor.PendingDead {
		did = "withdrew the request"
	}
	if !released.Foreign && !released.Gone {
		did += " after it had released the mark"
	}
	if !released.Gone {
		d.event(ctx, in, released.UID, did)
	}
	return did, nil
}

// slot is a maintenance's own word on its slot at this moment.
func (d *Activities) slot(ctx context.Context, in HealInput) (doctor.Maintenance, error) {
	m := doctor.Maintenance{WorkflowID: in.Finding.WorkflowID, RunID: in.Finding.RunID}
	described, err := d.chain(ctx, doctor.Holder{WorkflowID: m.WorkflowID, RunID: m.RunID})
	if err != nil {
		return m, err
	}
	if !described.Running {
		return m, errNoLonger
	}
	if err := d.runs().askMaintenance(ctx, in.Names, "", &m); err != nil {
		return m, err
	}
	if m.Unanswered != "" {
		return m, fmt.Errorf("the maintenance does not answer: %s", m.Unanswered)
	}
	if m.Ended || m.Phase == "Releasing" {
		return m, errNoLonger
	}
	return m, nil
}

// requestSlot sends the scheduler the maintenance's own request once more. It is idempotent: a request that is known is
// answered again.
func (d *Activities) requestSlot(ctx context.Context, in HealInput) (string, error) {
	f := in.Finding
	m, err := d.slot(ctx, in)
	if err != nil {
		return "", err
	}
	if !m.Wants || m.RequestID != f.RequestID {
		return "", errNoLonger
	}
	var wanted api.SlotWanted
	unanswered, err := d.runs().ask(ctx, f.WorkflowID, "", in.QuerySlot, &wanted)
	if err != nil {
		return "", err
	}
	if unanswered != "" {
		return "", fmt.Errorf("the maintenance does not answer: %s", unanswered)
	}
	if wanted.ID != f.RequestID {
		return "", errNoLonger
	}
	if err := d.releaseOthers(ctx, in); err != nil {
		return "", err
	}
	if err := caller.Signal(ctx, d.Temporal, in.Scheduler, "", api.SignalSlotRequest, wanted.SlotRequest); err != nil {
		return "", fmt.Errorf("signalling %s to %s: %w", api.SignalSlotRequest, in.Scheduler, err)
	}
	const did = "asked the scheduler for the slot in its name"
	d.event(ctx, in, "", did)
	return did, nil
}

// releaseOthers gives back what the scheduler knows under other requests of the maintenance, which knows best which is its
// own: the scheduler takes the later one for that.
func (d *Activities) releaseOthers(ctx context.Context, in HealInput) error {
	s, err := d.runs().scheduler(ctx, in.Names)
	if err != nil {
		return err
	}
	for _, slot := range slices.Concat(s.Holders, s.Pending) {
		id := cmp.Or(slot.RequestID, slot.ID)
		if slot.RunID != in.Finding.RunID || id == in.Finding.RequestID {
			continue
		}
		payload, err := in.release(id)
		if err != nil {
			return err
		}
		if err := caller.Signal(ctx, d.Temporal, in.Scheduler, "", api.SignalSlotRelease, payload); err != nil {
			return fmt.Errorf("signalling %s to %s: %w", api.SignalSlotRelease, in.Scheduler, err)
		}
	}
	return nil
}

// restoreMark signals a maintenance that its node does not carry its mark, as the scheduler's watch would.
func (d *Activities) restoreMark(ctx context.Context, in HealInput) (string, error) {
	f := in.Finding
	m, err := d.slot(ctx, in)
	if err != nil {
		return "", err
	}
	if m.RequestID != f.RequestID || m.Phase == "" {
		return "", errNoLonger
	}
	change := api.NodeChange{RequestID: f.RequestID, Unmarked: true}
	if err := caller.Signal(ctx, d.Temporal, f.WorkflowID, "", api.SignalNodeChanged, change); err != nil {
		return "", fmt.Errorf("signalling %s to %s: %w", api.SignalNodeChanged, f.WorkflowID, err)
	}
	const did = "told the maintenance that its mark is gone"
	d.event(ctx, in, "", did)
	return did, nil
}

func (d *Activities) cleanNode(ctx context.Context, in HealInput) (string, error) {
	uid, err := k8s.RemoveMarkings(ctx, d.Client, in.Finding.Node)
	if errors.Is(err, k8s.ErrMarked) || errors.Is(err, k8s.ErrCordoned) || errors.Is(err, k8s.ErrNodeGone) {
		return "", errNoLonger
	}
	if err != nil {
		return "", err
	}
	const did = "removed label and taint"
	d.event(ctx, in, uid, did)
	return did, nil
}

// resumeMachine has Cluster API remediate a Machine again whose node nothing holds.
func resumeMachine(ctx context.Context, d *Activities, in HealInput) (string, error) {
	f := in.Finding
	resumed, err := clusterapi.Machines{Client: d.Client}.Resume(ctx, f.Seen, f.Node)
	if err != nil {
		return "", err
	}
	if !resumed {
		return "", errNoLonger
	}
	did := "took the annotation off machine " + f.Seen
	if f.Node != "" {
		d.event(ctx, in, "", did)
	}
	return did, nil
}

// hideConditions takes off what a dead run shows in the node's status, and leaves what others show.
func (d *Activities) hideConditions(ctx context.Context, in HealInput) (string, error) {
	f := in.Finding
	if err := d.dead(ctx, in); err != nil {
		return "", err
	}
	if err := k8s.HideConditions(ctx, d.Client, f.Node, k8s.Caller{WorkflowID: f.WorkflowID, RunID: f.RunID}, false); err != nil {
		return "", err
	}
	const did = "took its conditions off"
	d.event(ctx, in, "", did)
	return did, nil
}
