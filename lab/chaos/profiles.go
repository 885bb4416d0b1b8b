package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/profile/state"
)

// The profiles that a lane's nodes may have.
const (
	// drains empties a node, runs a Job on it, and makes it schedulable afterwards.
	drains = "drains"
	// maintains has a node maintained.
	maintains = "maintains"
)

const (
	// sap begins the names of what profiles keep on a node.
	sap = "cloud.sap/"
	// neededMark has a node go into maintenance, and goMark says that it is there.
	neededMark = "chaos.drydock.dev/needed"
	goMark     = "chaos.drydock.dev/go"
	// movesWithin bounds a run: a worker looks every 30 s whether the evaluation runs, one whose worker is lost is begun anew after a
	// minute, and what failed is decided on again after 30 s at first.
	movesWithin = 8 * time.Minute
)

// profilesFile has one node of a lane in maintenance at a time.
const profilesFile = `intervals: {requeue: 5s}
instances:
  check:
  - {type: hasAnnotation, name: needed, config: {key: ` + neededMark + `, value: "true"}}
  - {type: maxMaintenance, name: max, config: {max: 1}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
  - {type: alterAnnotation, name: go, config: {key: ` + goMark + `, value: "true"}}
  - {type: alterAnnotation, name: stop, config: {key: ` + goMark + `, remove: true}}
  - {type: job, name: work, config: {templateFile: %q, namespace: %s, deadline: 4m}}
  - {type: maintenance, name: maintain, config: {drain: {mode: none}}}
  notify:
  - {type: slack, name: tell, config: {hook: "%s/said", channel: chaos, message: "{{ .Node.Name }} {{ .State }}"}, schedule: {type: oneshot, config: {delay: 0s}}}
profiles:
- name: ` + drains + `
  operational: {transitions: [{check: needed, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: max, next: in-maintenance}]}
  in-maintenance: {enter: drain && work && go, notify: tell, transitions: [{check: "!needed", trigger: uncordon && stop, next: operational}]}
- name: ` + maintains + `
  operational: {transitions: [{check: needed, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: max, trigger: maintain && go, next: in-maintenance}]}
  in-maintenance: {notify: tell, transitions: [{check: "!needed", trigger: stop, next: operational}]}
`

// profiled is an attempt whose nodes go through the states of a profile.
type profiled struct{ *attempt }

func (p profiled) profile() string { return p.cell.step.profile }

// drainsSteps are those of the profile that drains.
var drainsSteps = []step{
	{name: "evaluate", what: "activity EvaluateProfiles, and the watch of all nodes", task: "EvaluateProfiles", requests: allNodes, rewatch: true, profile: drains},
	{name: "find-transitions", what: "activity FindTransitions of a new evaluation", task: "FindTransitions", rebuild: true, profile: drains},
	{name: "begin-transition", what: "the evaluation begins a transition", call: command(starts(api.ProfileTransitionType)), profile: drains},
	{name: "show-state", what: "the patch that shows that a state without triggers was entered", requests: shows(state.Required, state.Required), profile: drains},
	{name: "ask-to-enter", what: "a transition asks for the slot by which a node goes into maintenance", call: command(signals(api.SignalSlotRequest)), profile: drains},
	{name: "grant-to-enter", what: "the scheduler grants it", call: command(signals(api.SignalSlotGranted)), profile: drains},
	{name: "carry", what: "activity CarryTransition, and its look at the node", task: "CarryTransition", input: `"to":"in-maintenance"`, requests: readsNode, profile: drains},
	{name: "move", what: "the patch that brings a node into maintenance", requests: shows(state.Maintenance, state.Required), profile: drains},
	{name: "send-notice", what: "activity SendProfileNotice, and its look at the node", task: "SendProfileNotice", requests: readsNode, profile: drains},
	{name: "note-notice", what: "the patch that says when the notification was due", requests: patchesNode(`Notifications\":{\"tell`), profile: drains},
	{name: "cordon-to-drain", what: "the patch that cordons the node", requests: patchesNode(`"unschedulable":true`), profile: drains},
	{name: "hold-to-drain", what: "the patch that marks the node", requests: patchesNode(`"drydock.dev/holders":"`), profile: drains},
	{name: "drain-for-profile", what: "activity Drain, and its watch of the pods", task: "Drain", requests: podsOfNode, profile: drains},
	{name: "evict-for-profile", what: "the eviction of a pod", requests: evicts, profile: drains},
	{name: "give-back", what: "the patch that takes the mark off", requests: patchesNode(`"drydock.dev/holders":null`), profile: drains},
	{name: "trigger-job", what: "activity RunTriggerJob, and its look at the node", task: "RunTriggerJob", requests: readsNode, profile: drains},
	{name: "create-trigger-job", what: "the creation of its Job", requests: createsJob, profile: drains},
	{name: "entered", what: "the patch that shows that the triggers of a state were carried out", requests: patchesNode(goMark + `":"true"`), profile: drains},
	{name: "tell-of-move", what: "an Event on the node", requests: tellsOfNode, profile: drains},
	{name: "move-back", what: "the patch that brings the node out of maintenance", requests: patchesNode(goMark + `":null`), profile: drains},
	{name: "give-entry-back", what: "the transition gives its slot back", call: command(signals(api.SignalSlotRelease)), profile: drains},
	{name: "end-transition", what: "the transition completes", call: command("CompleteWorkflowExecution"), profile: drains},
}

// maintainsSteps are those of the profile that has nodes maintained.
var maintainsSteps = []step{
	{name: "maintain", what: "activity MaintainForProfile, which begins the maintenance, and waits until it is Ready", task: "MaintainForProfile", profile: maintains},
	{name: "maintained", what: "the patch that brings a node that is Ready into maintenance", requests: patchesNode(goMark + `":"true"`), profile: maintains},
	{name: "end-maintenance", what: "activity EndProfileMaintenance: the node is operational", task: "EndProfileMaintenance", profile: maintains},
	{name: "say-done", what: "the signal of that activity", call: sends(api.MsgDone), profile: maintains},
}

// shows recognizes a patch by the state of a profile in it, and the state before.
func shows(current, previous state.State) func(*request) bool {
	return patchesNode(fmt.Sprintf(`\"Current\":\"%s\",\"Previous\":\"%s\"`, current, previous))
}

// profilesConfig is the part of a worker's configuration that has profiles.
func profilesConfig(l *lane) (string, error) {
	if !l.shape.profiles {
		return "", nil
	}
	file := l.workFile("profiles")
	return fmt.Sprintf("profiles: {file: %q}\n", file), os.WriteFile(file, fmt.Appendf(nil, profilesFile, l.workFile(brief), l.name, l.receiver.server.URL), 0o600)
}

// canHappenToProfiles reports whether there is something in a step of a profile to which the fault can happen.
func (c cell) canHappenToProfiles() bool {
	s := c.step
	switch k := c.kind; {
	case k == resetLockstep, k == terminateLockstep, k == stripMark, k == liftCordon:
		return false // who takes away what a drain holds has it begun anew, and evicts pods again
	case k.onAPI():
		return s.requests != nil // what asks the API server nothing is not about it
	case k == resetTransition, k == terminateTransition: // one has to run that does not end without an answer
		return !slices.Contains([]string{"evaluate", "find-transitions", "begin-transition", "show-state", "send-notice", "note-notice"}, s.name) &&
			(s.name != "ask-to-enter" || c.when == after) // before it no task of it is done
	case k == resetMaintenance:
		return s.profile == maintains && s.name != "maintain"
	}
	return true
}

// ready has the nodes have the profile of the step, and waits until they are operational.
func (p profiled) ready(ctx context.Context) error {
	for _, node := range p.nodes {
		patch := fmt.Sprintf(`{%q:%q}`, state.ProfileLabel, p.profile())
		if p.profile() == "" {
			patch = fmt.Sprintf(`{%q:null}`, state.ProfileLabel)
		}
		if err := p.change(ctx, node, "labels", patch); err != nil {
			return err
		}
	}
	if p.profile() == "" {
		return nil
	}
	p.receiver.forget(p.nodes[:])
	return world.Eventually(ctx, movesWithin, "the nodes of "+p.name+" are operational, and nothing is under way", func() error { return p.atRest(ctx) })
}

// atRest says what is going on.
func (p profiled) atRest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := world.Ask[api.ProfilesState](ctx, p.temporal.Client, api.ProfilesID(p.cluster), api.QueryState)
	if err == nil && (s.Waiting != "" || s.Problem != "" || len(s.UnderWay)+s.Sending > 0) {
		err = fmt.Errorf("%s%s, under way %+v, failed %+v, %d are sent, notes %+v", s.Waiting, s.Problem, s.UnderWay, s.Failed, s.Sending, s.Notes)
	}
	problems := []error{err}
	for _, node := range p.nodes {
		if n := p.observer.node(node); !is(n, state.Operational) || !strings.Contains(n.Annotations[state.DataAnnotation], p.profile()) {
			problems = append(problems, fmt.Errorf("node %s is %q: %s", node, n.Labels[state.StateLabel], n.Annotations[state.DataAnnotation]))
		}
	}
	return errors.Join(problems...)
}

func is(n *corev1.Node, in state.State) bool { return n.Labels[state.StateLabel] == string(in) }

// change changes the labels or the annotations of a node.
func (s *stack) change(ctx context.Context, node, what, patch string) error {
	return world.PatchNode(ctx, s.kube, node, `{"metadata":{%q:%s}}`, what, patch)
}

// move has both nodes go into maintenance, one after the other, and back, and waits until they are.
func (p profiled) move(ctx context.Context) error {
	for _, node := range p.nodes {
		if p.profile() == maintains {
			p.expect(node, api.ProfileRequestor(maintains))
		}
		if err := p.change(ctx, node, "annotations", fmt.Sprintf(`{%q:"true"}`, neededMark)); err != nil {
			return err
		}
	}
	rebuilt := !p.cell.step.rebuild
	been := map[string]bool{}
	return world.Eventually(ctx, movesWithin, "both nodes were in maintenance", func() error {
		for _, node := range p.nodes {
			n := p.observer.node(node)
			if been[node] || !is(n, state.Maintenance) || n.Annotations[goMark] == "" {
				continue
			}
			if !rebuilt {
				if err := p.terminate(ctx, api.ProfilesID(p.cluster)); err != nil {
					return err
				}
				rebuilt = true
			}
			if err := p.change(ctx, node, "annotations", fmt.Sprintf(`{%q:null}`, neededMark)); err != nil {
				return err
			}
			been[node] = true
		}
		if len(been) < len(p.nodes) {
			return fmt.Errorf("%v were; %w", been, p.atRest(ctx))
		}
		return p.atRest(ctx)
	})
}

// poison sends the workflows of profiles, which nobody has to tell anything, what may be wrong with a message.
func (p profiled) poison(ctx context.Context) error {
	if p.profile() == "" {
		return nil
	}
	problems := []error{p.send(ctx, api.ProfilesID(p.cluster), toProfiles())}
	for _, node := range p.nodes {
		problems = append(problems, p.send(ctx, api.ProfileTransitionID(p.cluster, p.profile(), node), toProfiles()))
	}
	return errors.Join(problems...)
}

func toProfiles() []message {
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		{api.SignalDrainBlocked, blocked()},
		{api.MsgDone, api.Done{Message: api.Message{By: forged, Comment: endless()}}},
		{api.MsgCancel, api.Cancel{Message: api.Message{By: forged}}},
	}
	return append(messages, nonsense(api.SignalDrainBlocked)...)
}

// hasMoved is what the receiver and the API server's audit log tell of the nodes' way into maintenance.
func (p profiled) hasMoved(context.Context) error {
	if p.profile() == "" {
		return nil
	}
	var problems []error
	for _, node := range p.nodes {
		if !p.receiver.wasTold(node + " " + string(state.Maintenance)) {
			problems = append(problems, fmt.Errorf("nobody was told that node %s is in maintenance", node))
		}
	}
	jobs, err := witness.Created(p.audit, p.from, p.name, "jobs")
	problems = append(problems, err)
	want, most := 0, 0
	if p.profile() == drains {
		want, most = len(p.nodes), len(p.nodes)
	}
	if p.cell.kind == terminateTransition {
		most++ // what follows the one that was ended by force knows nothing of its Job
	}
	if len(jobs) < want || len(jobs) > max(want, most) {
		problems = append(problems, fmt.Errorf("%d Jobs were run, want %d: one on each node", len(jobs), want))
	}
	return errors.Join(problems...)
}
