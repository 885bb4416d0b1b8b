package health

import (
	"fmt"
	"strconv"
	"time"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/workflows/meter"
)

const (
	// maxEvents bounds the events that are kept for people.
	maxEvents = 100
	// maxUnrecorded bounds those that wait to be recorded in Kubernetes, maxRecorded what is recorded at once.
	maxUnrecorded = 1000
	maxRecorded   = 50
)

func (c *check) announce(events []health.Event, now time.Time) {
	for _, e := range events {
		e.Text = bounds.Cut(e.Text, bounds.Text)
		c.Count(meter.HealthEvents, e.Reason)
		c.Sequence++
		kept := api.HealthEvent{At: now, Event: e}
		c.Events = append(c.Events, kept)
		if e.Node != "" {
			n, _ := c.Health.Node(e.Node)
			c.Unrecorded = append(c.Unrecorded, node.EventOn{Node: e.Node, UID: n.UID, Event: nodeevent.Event{
				Reason: api.EventReason(e.Reason), Message: "[remediation] " + c.name + ": " + e.Text, Warning: e.Warning, Key: strconv.Itoa(c.Sequence),
			}})
		}
		c.inform(kept)
	}
	c.Events = c.Events[max(len(c.Events)-maxEvents, 0):]
	if late := len(c.Unrecorded) - maxUnrecorded; late > 0 {
		c.Unrecorded = c.Unrecorded[late:]
		c.Note(now, "left out Kubernetes Events", fmt.Sprintf("%d waited to be recorded already", maxUnrecorded))
	}
}

// states are what channels know events as, by the reason of an event.
var states = map[string]notices.State{
	health.EventDetectedUnhealthy:    notices.NodeUnhealthy,
	health.EventRemediationCreated:   notices.RemediationBegun,
	health.EventRemediationEscalated: notices.RemediationEscalated,
	health.EventRemediationRemoved:   notices.RemediationEnded,
	health.EventRemediationFailed:    notices.RemediationFailed,
	health.EventNoTemplateLeft:       notices.RemediationFailed,
	health.EventOldRemediation:       notices.RemediationFailed,
	health.EventConfirmationNeeded:   notices.RemediationWaits,
	health.EventDisabled:             notices.HealthCheckDisabled,
	health.EventEnabled:              notices.HealthCheckEnabled,
	health.EventStormStarted:         notices.HealthStorm,
	health.EventStormEnded:           notices.HealthStormEnded,
}

func (c *check) inform(e api.HealthEvent) {
	state, known := states[e.Reason]
	if !known {
		return
	}
	c.Announce(&c.Base, c.Prepared.Channels, notices.Event{
		ID: api.EventID(c.Info.WorkflowID, c.Info.Run, api.Moment{Sequence: c.Sequence, At: e.At}), Sequence: c.Sequence,
		State: state, At: e.At, Node: e.Node, Requestor: api.RemediationRequestor(c.name), Cluster: c.Info.Cluster,
		HealthCheck: c.name, Message: e.Text, WorkflowID: c.Info.WorkflowID, RunID: c.Info.Run,
	}, e.At)
}
