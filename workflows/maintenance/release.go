package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/spec"
	"drydock/workflows/call"
)

// retryRelease bounds the pause between attempts to give something back.
const retryRelease = 30 * time.Second

// bringBack undoes what was done, whatever the end, and enters the end. It runs on a context that no cancellation
// reaches, and repeats until it has succeeded or the node is gone.
func (m *maintenance) bringBack(err error) {
	end := ending{phase: api.Completed}
	if err != nil && !errors.As(err, &end) {
		end = ending{phase: api.Failed, message: err.Error()}
	}
	m.cancel()
	m.status.ReadyDeadline = nil
	m.status.Failure = end.message
	m.tellEnd(end)
	if m.touched || m.request != "" {
		m.enter(api.Releasing, end.message)
		m.awaitThaw()
		message := m.summary() + ": " + string(end.phase)
		if end.message != "" {
			message += ": " + end.message
		}
		gone := m.releaseNode("Maintenance"+string(end.phase), message, end.phase == api.Failed)
		m.withdraw()
		if gone && end.phase == api.Completed {
			end = ending{phase: api.NodeGone, message: "the node was gone when the requestor was done"}
			m.status.Failure = end.message
		}
	}
	m.hideConditions()
	m.closeHooks(end.phase == api.Completed)
	m.waiting("")
	m.enter(end.phase, end.message)
	m.tellEnded(end)
}

// releaseNode takes the mark off the node, which fences every eviction in flight, and with it what Drydock changed; and
// then gives the slot back.
func (m *maintenance) releaseNode(reason, message string, warning bool) (gone bool) {
	if !m.touched {
		return false
	}
	m.touched = false
	m.stopGuard()
	slot, err := json.Marshal(api.SlotRelease{RequestID: m.request})
	if err != nil {
		workflow.GetLogger(m.life).Error("slot not released", "error", err)
	}
	m.waiting("the node and its slot to be released")
	for {
		ctx := call.Quick(m.life, "release "+m.spec.Node)
		var released node.Released
		err := workflow.ExecuteActivity(ctx, call.Nodes.ReleaseNode, node.ReleaseInput{
			Node: m.spec.Node, WorkflowID: m.status.WorkflowID, RunID: m.status.RunID,
			Event:            nodeevent.Event{Reason: reason, Message: message, Warning: warning, Key: fmt.Sprint(m.status.Attempt)},
			HideConditions:   m.conditionsShown,
			WithdrawRequests: m.spec.Drain.Via == spec.ViaEvictionRequest,
			Then:             &node.Signal{WorkflowID: api.SchedulerID(m.cluster), Name: api.SignalSlotRelease, Payload: slot},
		}).Get(ctx, &released)
		if err == nil {
			m.uid, m.request, m.conditionsShown = "", "", false
			if len(released.OtherHolders) > 0 {
				m.note(fmt.Sprintf("the node stays out of service for %v", released.OtherHolders))
			}
			return released.Gone
		}
		m.waiting(fmt.Sprintf("the node to be released: %v", err))
		m.pause(retryRelease)
	}
}

// withdraw takes back the request for a slot of a maintenance that did not touch its node.
func (m *maintenance) withdraw() {
	if m.request == "" {
		return
	}
	for wait := time.Second; ; wait = min(2*wait, retryRelease) {
		err := m.toScheduler(m.life, api.SignalSlotRelease, api.SlotRelease{RequestID: m.request})
		if err == nil {
			m.request = ""
			return
		}
		m.waiting(fmt.Sprintf("the scheduler to take the request back: %v", err))
		m.pause(wait)
	}
}

// awaitThaw keeps a frozen maintenance as it is: to give a node back is a side effect too.
func (m *maintenance) awaitThaw() {
	if m.held() {
		m.waiting("a thaw: " + strings.Join(m.holdReasons, "; "))
		m.await(func() bool { return !m.held() })
		m.waiting("")
	}
}

// await waits where no cancellation reaches, so there is no error to handle.
func (m *maintenance) await(condition func() bool) {
	if err := workflow.Await(m.life, condition); err != nil {
		workflow.GetLogger(m.life).Error("wait interrupted", "error", err)
	}
}

// pause sleeps where no cancellation reaches, so there is no error to handle.
func (m *maintenance) pause(d time.Duration) {
	if err := workflow.Sleep(m.life, d); err != nil {
		workflow.GetLogger(m.life).Error("pause interrupted", "error", err)
	}
}
