package plan

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/settings"
	"drydock/api"
	"drydock/rules/rollout"
	"drydock/workflows/call"
)

// state is all that a run hands to the next, and what the status is made of. It fits into a payload: it is handed over
// compressed, and what it is made of is bounded where it is written.
type state struct {
	Phase     api.PlanPhase `json:"phase"`
	Since     time.Time     `json:"since"`
	CreatedAt time.Time     `json:"createdAt"`
	Failure   string        `json:"failure,omitempty"`
	// WaitingFor and Until are what the last decision waits for.
	WaitingFor string    `json:"waitingFor,omitempty"`
	Until      time.Time `json:"until,omitzero"`
	// Stop is the end that the plan comes to, once somebody or something decided that it ends.
	Stop       api.PlanPhase `json:"stop,omitempty"`
	StoppedWhy string        `json:"stoppedWhy,omitempty"`

	Progress      rollout.Progress `json:"progress,omitzero"`
	AskedApproval bool             `json:"askedApproval,omitempty"`
	Nodes         []rollout.Node   `json:"nodes,omitempty"`
	// Digest is that of the list of nodes which Nodes were last brought up to date with.
	Digest   string   `json:"digest,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Staged is how far a plan is whose nodes go through stages together; nil of others.
	Staged *staged `json:"staged,omitempty"`
	// Skipping are nodes whose maintenance is taken back because somebody skips them.
	Skipping map[string]bool    `json:"skipping,omitempty"`
	Events   []api.PlanEvent    `json:"events,omitempty"`
	Messages []api.Received     `json:"messages,omitempty"`
	Heard    []string           `json:"heard,omitempty"`
	Prepared *settings.Prepared `json:"prepared,omitempty"`
	// ContinueAfter is after how many signals a run continues as new; 0 is the usual number.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// continueAsNew goes on in a new run: a history has its limits.
func (p *plan) continueAsNew(root workflow.Context, input converter.RawValue) error {
	packed, err := api.Pack(p.state)
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(root, api.MaintenancePlanType, input, packed)
}

func unpack(packed []byte) (state, error) {
	var s state
	if err := api.Unpack(packed, &s); err != nil {
		return s, fmt.Errorf("carried state: %w", err)
	}
	return s, nil
}

// wasReset takes up what the run did that this one is a copy of.
func (p *plan) wasReset(ctx workflow.Context) (runID string, err error) {
	p.doubts++
	defer func() { p.doubts--; p.dirty = true }()
	if err := workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID); err != nil {
		return "", err
	}
	if err := p.course.copied(ctx); err != nil {
		return "", err
	}
	return runID, nil
}
