package delivery

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/notify"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"encoding/json"
	"time"
)

type Activities struct{}

// DeliverInput is a message for one channel.
type DeliverInput struct {
	Channel string          `json:"channel"`
	Events  []notices.Event `json:"events"`
	// Key is the same whenever the message is sent again.
	Key string `json:"key"`
	// Thread is what an earlier message of the same thread returned.
	Thread string `json:"thread,omitempty"`
	// Until is when it is given up; zero is unknown.
	Until time.Time `json:"until,omitzero"`
}

func (n *Activities) Deliver(ctx context.Context, in DeliverInput) (notify.Receipt, error) {
	panic("frozen")
}

// CollectInput is an event for a workflow that collects those of many maintenances.
type CollectInput struct {
	WorkflowID   string             `json:"workflowId"`
	WorkflowType string             `json:"workflowType"`
	Signal       string             `json:"signal"`
	Event        api.EventReference `json:"event"`
	Start        json.RawMessage    `json:"start"`
}

func (n *Activities) Collect(ctx context.Context, in CollectInput) error { panic("frozen") }
