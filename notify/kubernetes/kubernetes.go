// Package kubernetes records Events on nodes.
package kubernetes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that records Events.
var Kind = sections.Kind[notify.Receiver]{Name: "kubernetes", Config: &Config{}}

// Config records an Event on the node, with the state as its reason. It has no fields: `{}`.
type Config struct{}

// text is one line, about a node that it is attached to.
const text = `{{.State.Phrase}}{{with .Requestor}}, for {{.}}{{end}}
{{- with .Reason}}: {{.}}{{end}}{{with .Ticket}} ({{.}}){{end}}{{with .Message}}; {{.}}{{end}}
{{- if .Blockers}}; waiting for {{join ", " .Blockers}}{{with .MoreBlockers}} and {{.}} more{{end}}{{end}}`

// Validate finds nothing wrong.
func (*Config) Validate(string, *sections.Problems) {}

// Secrets are none.
func (*Config) Secrets() map[string]secret.Value { return nil }

// Abilities are those of one line.
func (*Config) Abilities() notify.Abilities {
	return notify.Abilities{NoSubject: "a Kubernetes Event has no subject", Text: text}
}

// Sender makes the sender.
func (*Config) Sender(e notify.Environment) (notify.Sender, error) {
	if e.Emitter == nil {
		return nil, errors.New("there is no Kubernetes client to record Events with")
	}
	return sender{e.Emitter}, nil
}

type sender struct{ emitter notify.EventEmitter }

// Send records one Event per event, so that a digest is a row of Events on several nodes.
func (s sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	for _, e := range d.Events {
		if e.Node == "" {
			continue // a plan has no node to record it on
		}
		_, text, err := d.WordsOf([]notices.Event{e})
		if err != nil {
			return notify.Receipt{}, err
		}
		key := d.Key
		if len(d.Events) > 1 {
			key += "/" + e.ID
		}
		if err := s.emitter.EmitNodeEvent(ctx, e.Node, key, string(e.State), notify.OneLine(text), warns(e.State)); err != nil {
			return notify.Receipt{}, classified(err)
		}
	}
	return notify.Receipt{}, nil
}

// warns says that somebody ought to look.
func warns(s notices.State) bool {
	return s == notices.SLAExpired || s == notices.MaintenanceIncomplete || s == notices.Escalated
}

func classified(err error) error {
	out := fmt.Errorf("recording an Event: %w", err)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return notify.AsPermanent(out)
	default:
		return out
	}
}
