// Package pagerduty opens an incident of PagerDuty if somebody has to act, and resolves it when that is over.
package pagerduty

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that opens and resolves incidents of PagerDuty.
var Kind = sections.Kind[notify.Receiver]{Name: "pagerduty", Config: &Config{}}

// Config opens an incident of PagerDuty if somebody has to act, one for each maintenance, plan, remediation, storm or disabled health
// check, and resolves it when that is over. Other events are not sent.
type Config struct {
	// RoutingKey is the integration key of a service's Events API v2, a [secret](#secrets).
	RoutingKey secret.Value `json:"routingKey,omitzero" jsonschema:"required"`
	// URL is where events are posted, as accounts in the EU need another one.
	URL string `json:"url,omitempty" jsonschema:"default=https://events.pagerduty.com/v2/enqueue"`
	// CAFile is a file with [authorities](#authorities) that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
	// AllowPlaintext lets the key go by http.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

const address = "https://events.pagerduty.com/v2/enqueue"

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	if c.RoutingKey.IsZero() {
		p.Add(field+".routingKey", "is missing: want the integration key of a service's Events API v2")
	} else {
		p.Check(field+".routingKey", c.RoutingKey.Validate())
	}
	if c.URL == "" {
		return
	}
	p.Check(field+".url", outbound.CheckPlainURL(c.URL))
	if u, err := url.Parse(c.URL); err == nil {
		p.Check(field+".url", outbound.CheckPlaintext(u, true, c.AllowPlaintext))
	}
}

// Secrets are the key.
func (c *Config) Secrets() map[string]secret.Value {
	return map[string]secret.Value{"routingKey": c.RoutingKey}
}

// Abilities are those of what has no threads.
func (*Config) Abilities() notify.Abilities { return notify.Abilities{} }

// Sender makes the sender.
func (c *Config) Sender(e notify.Environment) (notify.Sender, error) {
	return sender{config: *c, agent: e.Agent}, nil
}

// What PagerDuty takes, in bytes.
const (
	maxSummary = 1024
	maxKey     = 255
	maxText    = 16 << 10
)

const resolve = "resolve"

// severities are those of the events that open an incident.
var severities = map[notices.State]string{
	notices.SLAExpired: "error", notices.MaintenanceIncomplete: "error", notices.Escalated: "warning",
	notices.AwaitingApproval: "warning", notices.ApprovalReminder: "warning",
	notices.PlanCanaryWaits: "warning", notices.PlanPaused: "error",
	notices.RemediationWaits: "warning", notices.RemediationFailed: "error", notices.HealthStorm: "critical", notices.HealthCheckDisabled: "error",
}

// over are the events that resolve one: MaintenanceScheduled follows an approval, and a drain that was given up.
var over = map[notices.State]bool{
	notices.MaintenanceScheduled: true, notices.MaintenanceStarted: true, notices.ObjectsDrained: true,
	notices.MaintenanceEnded: true, notices.MaintenanceComplete: true, notices.MaintenanceCancelled: true,
	notices.PlanResumed: true, notices.PlanEnded: true,
	notices.RemediationEnded: true, notices.HealthStormEnded: true, notices.HealthCheckEnabled: true,
}

// event is one of PagerDuty's Events API v2.
type event struct {
	RoutingKey string   `json:"routing_key"`
	Action     string   `json:"event_action"`
	DedupKey   string   `json:"dedup_key"`
	Client     string   `json:"client,omitempty"`
	Payload    *payload `json:"payload,omitempty"`
}

type payload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp time.Time         `json:"timestamp"`
	Details   map[string]string `json:"custom_details"`
}

type sender struct {
	config Config
	agent  string
}

// Send posts what opens or resolves an incident, in the order of the events. PagerDuty takes a repetition for the same incident.
func (s sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	key, err := d.Secret("pagerduty.routingKey", s.config.RoutingKey)
	if err != nil {
		return notify.Receipt{}, err
	}
	client, err := outbound.NewClient(outbound.Options{CAFile: s.config.CAFile})
	if err != nil {
		return notify.Receipt{}, err
	}
	for _, e := range d.Events {
		out := event{RoutingKey: key, Action: resolve, DedupKey: incident(e)}
		if severity, opens := severities[e.State]; opens {
			subject, text, err := d.WordsOf([]notices.Event{e})
			if err != nil {
				return notify.Receipt{}, err
			}
			out.Action, out.Client = "trigger", "Drydock"
			out.Payload = &payload{
				Summary: bounds.Cut(subject, maxSummary), Source: cmp.Or(e.Node, e.WorkflowID), Severity: severity, Timestamp: e.At,
				Details: map[string]string{"text": bounds.Cut(text, maxText), "workflow": e.WorkflowID},
			}
		} else if !over[e.State] {
			continue
		}
		if err := s.post(ctx, client, d, out); err != nil {
			return notify.Receipt{}, err
		}
	}
	return notify.Receipt{}, nil
}

// incident is the key of the incident that an event is about. A workflow has one, but for a health check: that has one for each node, one for
// a storm, and one for being disabled.
func incident(e notices.Event) string {
	key := e.WorkflowID + "/" + e.RunID
	switch {
	case e.HealthCheck == "":
	case e.Node != "":
		key += "/" + e.Node
	case e.State == notices.HealthCheckDisabled, e.State == notices.HealthCheckEnabled:
		key += "//disabled"
	}
	if len(key) > maxKey {
		key = notify.Hash(key)
	}
	return key
}

func (s sender) post(ctx context.Context, client *http.Client, d *notify.Delivery, out event) error {
	body, err := json.Marshal(out)
	if err != nil {
		return notify.AsPermanent(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(s.config.URL, address), bytes.NewReader(body))
	if err != nil {
		return notify.AsPermanent(fmt.Errorf("pagerduty.url: %w", err))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.agent)
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("posting to PagerDuty: %w", err)
	}
	defer response.Body.Close()
	return d.Answered(response)
}
