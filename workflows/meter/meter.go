// Package meter has the metrics of workflows. They are recorded by the SDK's handler, which is silent while a history is replayed; the worker
// registers them.
package meter

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/spec"
)

// Metric is a metric with at most one label, and the values of that. Without a Label it has one series.
type Metric struct {
	Name, Help string
	Label      string
	Values     []string
	// Durations: it is a histogram of durations, and otherwise a counter.
	Durations bool
}

// The metrics.
var (
	Started = Metric{
		Name: "drydock_maintenances_started_total", Help: "Maintenances that were begun; one whose input is refused is not.",
	}
	Ended = Metric{
		Name: "drydock_maintenances_ended_total", Help: "Maintenances that have ended, by their last phase.", Label: "outcome", Values: ends(true),
	}
	Duration = Metric{
		Name: "drydock_maintenance_duration_seconds", Help: "Time from the start of a maintenance to its end, by its last phase.",
		Label: "outcome", Values: ends(true), Durations: true,
	}
	Phases = Metric{
		Name: "drydock_phase_duration_seconds", Help: "Time that maintenances spent in a phase, observed when they leave it.",
		Label: "phase", Values: ends(false), Durations: true,
	}
	SLAExpired = Metric{
		Name: "drydock_sla_expired_total", Help: "Drains that were not over when their SLA was.",
	}
	Escalations = Metric{
		Name: "drydock_escalations_total", Help: "Rungs of the escalation that drains took, by rung.", Label: "rung", Values: spec.Rungs,
	}
	Reclaimed = Metric{
		Name: "drydock_slots_reclaimed_total", Help: "Slots taken back from maintenances that ended without giving them back, by what became of the node.",
		Label: "node", Values: []string{NodeReleased, NodeReported, NodeUnknown},
	}
	PlansEnded = Metric{
		Name: "drydock_plans_ended_total", Help: "Maintenance plans that have ended, by their last phase.", Label: "outcome",
		Values: []string{string(api.PlanCompleted), string(api.PlanIncomplete), string(api.PlanCancelled), string(api.PlanAborted)},
	}
	HealthEvents = Metric{
		Name: "drydock_health_events_total", Help: "Events of health checks, by their reason.", Label: "reason", Values: health.EventReasons,
	}
	Remediations = Metric{
		Name: "drydock_health_remediation_duration_seconds", Help: "Time from the beginning of a node's remediation to its end, observed then.",
		Durations: true,
	}
	// GivenUp and Refused have the names of channels as values.
	GivenUp = Metric{
		Name: "drydock_deliveries_given_up_total", Help: "Messages that were not delivered to a channel and are not tried any more.", Label: "channel",
	}
	Refused = Metric{
		Name: "drydock_event_signals_refused_total", Help: "Signals that the workflows of a channel refused.", Label: "channel",
	}
)

// All are all metrics of workflows.
var All = []Metric{Started, Ended, Duration, Phases, SLAExpired, Escalations, Reclaimed, PlansEnded, HealthEvents, Remediations, GivenUp, Refused}

// What becomes of the node of a slot that is reclaimed.
const (
	NodeReleased = "released"
	NodeReported = "reported"
	NodeUnknown  = "unknown"
)

// ends returns the phases that are ends, or those that are not.
func ends(wanted bool) (names []string) {
	for _, phase := range api.Phases {
		if phase.Ended() == wanted {
			names = append(names, string(phase))
		}
	}
	return names
}

// Count adds one; value is the label's value, empty without a label.
func (m Metric) Count(ctx workflow.Context, value string) {
	workflow.GetMetricsHandler(ctx).WithTags(m.tags(value)).Counter(m.Name).Inc(1)
}

// Took observes a duration.
func (m Metric) Took(ctx workflow.Context, value string, d time.Duration) {
	workflow.GetMetricsHandler(ctx).WithTags(m.tags(value)).Timer(m.Name).Record(max(d, 0))
}

func (m Metric) tags(value string) map[string]string {
	if m.Label == "" {
		return nil
	}
	return map[string]string{m.Label: value}
}
