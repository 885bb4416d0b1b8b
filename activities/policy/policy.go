// Package policy judges maintenances by the rules of the worker's configuration, and finds who sent a message.
package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/policy"
	"drydock.dev/drydock/rules/spec"
)

// Judge judges by rules. A nil Policy has none.
type Judge struct {
	Policy *policy.Policy
	Client kube.Interface
	// Starters know who started workflows; without them no starter is verified.
	Starters *execution.Starters
}

// HasRules reports whether there is anything to judge by.
func (j *Judge) HasRules() bool { return j != nil && j.Policy != nil }

// nodeWithin and starterWithin keep the beginning of a maintenance from waiting for an API server, or a Temporal server, that hangs.
const (
	nodeWithin    = 3 * time.Second
	starterWithin = 3 * time.Second
)

// Begin judges a maintenance that begins, and says why it is refused; empty if it is not. Rules that speak of a node
// that cannot be looked at now, or of a starter whom Temporal does not tell now, are left to Judge, which is asked before the node is touched.
func (j *Judge) Begin(ctx context.Context, m spec.Maintenance) string {
	if !j.HasRules() {
		return ""
	}
	c := policy.Case{Maintenance: m}
	if j.Policy.NeedsNode(false) {
		ctx, cancel := context.WithTimeout(ctx, nodeWithin)
		defer cancel()
		var err error
		if c.Node, err = j.node(ctx, m.Node); err != nil {
			activity.GetLogger(ctx).Warn("rules that speak of the node are judged when it is held", "node", m.Node, "error", err)
		}
	}
	asking, cancel := context.WithTimeout(ctx, starterWithin)
	defer cancel()
	var err error
	if c.Starter, err = j.starter(asking, false); err != nil {
		c.StarterUnknown = true
		activity.GetLogger(ctx).Warn("rules that speak of the starter are judged when the node is held", "error", err)
	}
	if err := j.Policy.Judge(ctx, c); err != nil {
		return err.Error()
	}
	return ""
}

// Judge judges a maintenance, given as the JSON of its specification, whose node is about to be held. Errors:
// PolicyRefused, which no retry heals; k8s.ErrNodeGone; those of the API server.
func (j *Judge) Judge(ctx context.Context, maintenance json.RawMessage) error {
	if !j.HasRules() {
		return nil
	}
	c, err := caseOf(maintenance)
	if err != nil {
		return err
	}
	if j.Policy.NeedsNode(false) {
		if c.Node, err = j.node(ctx, c.Maintenance.Node); err != nil {
			return err
		}
	}
	if c.Starter, err = j.starter(ctx, false); err != nil {
		return err
	}
	return refusal(ctx, j.Policy.Judge(ctx, c))
}

// caseOf reads a specification. One that cannot be read cannot be judged, and what cannot be judged is refused.
func caseOf(maintenance json.RawMessage) (policy.Case, error) {
	var c policy.Case
	err := json.Unmarshal(maintenance, &c.Maintenance)
	if err == nil {
		err = spec.NodeName(c.Maintenance.Node)
	}
	if err != nil {
		return c, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("the maintenance cannot be judged: its specification: %v", err), api.ErrorPolicyRefused, nil)
	}
	return c, nil
}

// refusal is the error by which an activity refuses. An evaluation that was interrupted is no verdict.
func refusal(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorPolicyRefused, nil)
}

// starter is what rules see of the person who started the calling maintenance, where one of them uses that. It comes from
// the history, never from an input; of a maintenance that a plan started, it is the plan's.
func (j *Judge) starter(ctx context.Context, atApproval bool) (policy.Starter, error) {
	if j.Starters == nil || !j.Policy.NeedsStarter(atApproval) {
		return policy.Starter{}, nil
	}
	asking := activity.GetInfo(ctx).WorkflowExecution
	principal, err := j.Starters.Person(ctx, execution.Run{WorkflowID: asking.ID, RunID: asking.RunID})
	if err != nil || principal == "" {
		return policy.Starter{}, err
	}
	return policy.Starter{Principal: &principal}, nil
}

// decider is the verified principal of the Kubernetes user who said a word by the object that asks for the calling maintenance; empty
// where nobody did.
func (j *Judge) decider(ctx context.Context, word Word) (string, error) {
	by, isUser := strings.CutPrefix(word.By, v1alpha1.Said(""))
	if j == nil || j.Starters == nil || !isUser {
		return "", nil
	}
	calling := activity.GetInfo(ctx).WorkflowExecution
	said := v1alpha1.Decision{Message: word.Name, By: by, Comment: word.Comment}
	return j.Starters.Decider(ctx, execution.Run{WorkflowID: calling.ID, RunID: calling.RunID}, said)
}

// node is what rules see of a node.
func (j *Judge) node(ctx context.Context, name string) (*policy.Node, error) {
	found, err := j.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("node %s: %w", name, k8s.ErrNodeGone)
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return nodeOf(found), nil
}

func nodeOf(n *corev1.Node) *policy.Node {
	node := &policy.Node{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}
	for _, t := range n.Spec.Taints {
		node.Taints = append(node.Taints, policy.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return node
}

// Activities judge what is said to a maintenance.
type Activities struct {
	Judge     *Judge
	Temporal  client.Client
	Namespace string
}

// ApprovalInput is an approval or a denial of a maintenance that waits for approval.
type ApprovalInput struct {
	Word Word      `json:"word"`
	At   time.Time `json:"at"`
	// Before is the number of events that the run's history had when the word was read; 0 where it is not known.
	Before int64 `json:"before,omitempty"`
	// Maintenance is the specification, where there are rules to judge by.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
}

// About implements caller.Input.
func (in ApprovalInput) About() caller.Subject { return caller.Subject{Spec: in.Maintenance} }

// Judged is what is known of a word, and why it does not count.
type Judged struct {
	// Sender is who sent it, as far as that is known.
	api.Sender
	// Refused is empty if the word counts.
	Refused string `json:"refused,omitempty"`
}

// AmendmentInput is what a maintenance would be asked to be from now on.
type AmendmentInput struct {
	Maintenance json.RawMessage `json:"maintenance"`
}

// About implements caller.Input.
func (in AmendmentInput) About() caller.Subject { return caller.Subject{Spec: in.Maintenance} }

// JudgeAmendment reports whether the policy lets a maintenance become another than it was asked to be. Errors:
// MissingPermission.
func (a *Activities) JudgeAmendment(ctx context.Context, in AmendmentInput) (Judged, error) {
	err := a.Judge.Judge(ctx, in.Maintenance)
	var refused *temporal.ApplicationError
	switch {
	case err == nil:
		return Judged{}, nil
	case errors.As(err, &refused) && refused.Type() == api.ErrorPolicyRefused:
		return Judged{Refused: refused.Message()}, nil
	case ctx.Err() != nil:
		return Judged{}, ctx.Err()
	default:
		return Judged{}, failure.Translate(ctx, a.Judge.Client, err)
	}
}

// JudgeApproval finds who sent an approve or a deny, and has the policy judge the approve: to deny, nobody needs to be
// allowed. Errors: MissingPermission.
func (a *Activities) JudgeApproval(ctx context.Context, in ApprovalInput) (Judged, error) {
	sender, err := a.senderOf(ctx, in.Word, in.Before)
	if err != nil {
		return Judged{}, err
	}
	decider, err := a.Judge.decider(ctx, in.Word)
	if err != nil {
		return Judged{}, failure.Translate(ctx, a.Judge.Client, err)
	}
	sender.Principal = cmp.Or(decider, sender.Principal)
	judged := Judged{Sender: sender}
	if in.Word.Name != api.MsgApprove || len(in.Maintenance) == 0 || !a.Judge.HasRules() || !a.Judge.Policy.JudgesApprovals() {
		return judged, nil
	}
	c, err := caseOf(in.Maintenance)
	if err != nil {
		return Judged{}, err
	}
	c.Approval = &policy.Approval{By: in.Word.By, Comment: in.Word.Comment, At: in.At}
	if sender.Principal != "" {
		c.Approval.Principal = &sender.Principal
	}
	if c.Starter, err = a.Judge.starter(ctx, true); err != nil {
		return Judged{}, err
	}
	if a.Judge.Policy.NeedsNode(true) {
		if c.Node, err = a.Judge.node(ctx, c.Maintenance.Node); err != nil && !errors.Is(err, k8s.ErrNodeGone) {
			return Judged{}, failure.Translate(ctx, a.Judge.Client, err)
		}
	}
	if err := a.Judge.Policy.Judge(ctx, c); err != nil {
		if ctx.Err() != nil {
			return Judged{}, ctx.Err()
		}
		judged.Refused = err.Error()
	}
	return judged, nil
}
