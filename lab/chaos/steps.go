package main

import (
	"net/http"
	"slices"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// step is something a maintenance, or the scheduler for it, does: one that the proxies can recognize. Its boundary is
// an activity's task, or a call to Temporal, or else a request to the API server.
type step struct {
	name string
	// what happens in it, for the reader of the matrix.
	what string
	task string
	// input is a part of what the activity is given, where its type alone does not say which step it is.
	input string
	call  func(call) bool
	// requests are those whose answer a fault of the API server spoils; nil are all but those about Events. Where the
	// boundary is elsewhere, they count from there on.
	requests func(*request) bool
	// rewatch breaks the watch that the requests are about at the boundary, so that there is a request to spoil.
	rewatch bool
	// rebuild terminates the scheduler while a node is held, or the health check while a node is remediated.
	rebuild bool
	// preflight asks for a preflight before the slot, of one node after the other: a node out of service leaves no room
	// for the other's pods.
	preflight string
	// work is what the worker does by itself: reboots, after which nobody says done, or goesOn, until somebody does.
	work string
	// windows has the maintenances keep to a window whose openings are computed anew.
	windows bool
	// plan has a plan begin the maintenances, and says what it does besides; empty is none.
	plan planning
	// shut lets a budget refuse a pod of the first node until the fault has happened.
	shut bool
	// says is told to the maintenance of the first node, about a pod of it, until the fault has happened.
	says func(who api.Message, run, pod string) (message string, payload any)
	// objects has objects ask for the maintenances, which the bridge serves.
	objects bool
	// profile is the profile through whose states the nodes go in place of a maintenance, empty for none.
	profile string
	// heals has the nodes fall ill in place of a maintenance, and be remediated in this way.
	heals healing
	// calls has a workflow of somebody else's ask for the maintenances, in this way.
	calls calling
}

func (s step) atRequest() bool { return s.task == "" && s.call == nil }

func (s step) isCall(c call) bool {
	switch {
	case s.task != "":
		// A task comes by a poll, or at once with the answer to the workflow task that scheduled it.
		return c.activity == s.task && strings.Contains(c.input, s.input) && !c.beats()
	case s.call != nil:
		return s.call(c)
	default:
		return false
	}
}

func (s step) isRequest(r *request) bool {
	if s.requests == nil {
		return !strings.Contains(r.path, "/events")
	}
	return s.requests(r)
}

// steps are all steps, in the order in which a maintenance comes to them.
var steps = slices.Concat(otherSteps, drainsSteps, maintainsSteps, objectsSteps, callerSteps)

// otherSteps are those of maintenances, plans and health checks.
var otherSteps = []step{
	{name: "list-nodes", what: "activity ListPlanNodes, and the watch of all nodes", task: "ListPlanNodes", requests: allNodes, rewatch: true, plan: rolls},
	{name: "find-earlier", what: "activity FindBegun of a plan that begins, for what an earlier one of its name has left", task: "FindBegun", plan: rolls},
	{name: "begin-node", what: "a plan begins the maintenance of a node", call: command(starts(api.NodeMaintenanceType)), plan: rolls},
	{name: "preflight", what: "activity CheckPreflight, and its requests", task: "CheckPreflight", preflight: spec.PreflightFail},
	{name: "await-preflight", what: "activity AwaitPreflight, and its requests", task: "AwaitPreflight", preflight: spec.PreflightWait},
	{name: "slot-request", what: "the maintenance asks the scheduler for its slot", call: command(signals(api.SignalSlotRequest))},
	{name: "observe", what: "activity ObserveNodes of a new scheduler, and the watch of all nodes", task: "ObserveNodes", requests: allNodes, rewatch: true, rebuild: true},
	{name: "openings", what: "activity ComputeOpenings, which knows when a window is open", task: "ComputeOpenings", windows: true},
	{name: "slot-granted", what: "the scheduler grants the slot", call: command(signals(api.SignalSlotGranted))},
	{name: "watch", what: "activity WatchCluster, and the watch of all nodes", task: "WatchCluster", requests: allNodes, rewatch: true},
	{name: "check-releases", what: "activity CheckReleases before the first hook, and its look at the node", task: "CheckReleases", requests: readsNode},
	{name: "before-cordon", what: "activity CallHook before the cordon, and the next request", task: "CallHook", input: `"hook":"before-cordon"`},
	{name: "hold", what: "activity HoldNode, and its look at the node", task: "HoldNode", requests: readsNode},
	{name: "cordon", what: "the patch that marks and cordons the node", requests: patchesNode(`"drydock.dev/holders":"`)},
	{name: "event", what: "an Event on the node", requests: tellsOfNode},
	{name: "wait-for-pods", what: "activity WaitForPods, and its watch of the pods", task: "WaitForPods", requests: podsOfNode},
	{name: "drain", what: "activity Drain, and its watch of the pods", task: "Drain", requests: podsOfNode},
	{name: "evict", what: "the eviction of a pod", requests: evicts},
	{name: "budgets", what: "activity Drain, and the watch of the budgets, which drains share", task: "Drain", requests: readsBudgets, rewatch: true},
	{name: "blocked", what: "the drain tells its workflow what blocks", call: sends(api.SignalDrainBlocked), shut: true},
	{name: "heartbeat", what: "the drain shows that it lives", call: beats("Drain"), shut: true},
	{name: "find-pod", what: "activity FindPod, which looks for a pod that is to be skipped", task: "FindPod", requests: asksForPod, shut: true, says: skipsPod},
	{name: "find-consented", what: "activity FindPod, for a consent to the loss of the pod", task: "FindPod", requests: asksForPod, shut: true, says: consentsTo},
	{name: "judge", what: "activity JudgeAmendment, and its look at the node", task: "JudgeAmendment", requests: readsNode, shut: true, says: consentsTo},
	{name: "taint", what: "the patch that keeps DaemonSet pods away", requests: taints},
	{name: "delete", what: "the deletion of a DaemonSet's pod", requests: deletesPod},
	{name: "after-drain", what: "activity CallHook after the drain, and the next request", task: "CallHook", input: `"hook":"after-drain"`},
	{name: "announce", what: "activity AnnouncePhase, and its Event", task: "AnnouncePhase", requests: tellsOfNode},
	{name: "phase", what: "the patch that shows the phase on the node", requests: showsPhase},
	{name: "begin-work", what: "activity BeginWork, and its look at the node", task: "BeginWork", requests: readsNode, work: reboots},
	{name: "create-job", what: "the creation of the Job that does the work", requests: createsJob, work: reboots},
	{name: "await-work", what: "activity AwaitWork, and its look at the node that reboots", task: "AwaitWork", requests: readsNode, work: reboots},
	{name: "end-work", what: "activity EndWork: somebody says done while the work goes on", task: "EndWork", work: goesOn},
	{name: "node-news", what: "a maintenance tells its plan that it waits for a decision", call: command(signals(api.SignalNodeNews)), plan: hears},
	{name: "find-begun", what: "activity FindBegun of a plan that was reset", task: "FindBegun", input: `"again":true`, plan: anew},
	{name: "await-ends", what: "activity AwaitEnds of a plan that was reset", task: "AwaitEnds", plan: anew},
	{name: "await-plan-nodes", what: "activity AwaitPlanNodes of a plan in lockstep, and the watch of all nodes", task: "AwaitPlanNodes", requests: allNodes, rewatch: true, plan: together},
	{name: "send-intent", what: "activity SendIntent, by which a plan tells the lockstep what it intends", task: "SendIntent", plan: together},
	{name: "plan-intent", what: "the signal of that activity, which starts the lockstep", call: sends(api.SignalPlanIntent), plan: together},
	{name: "find-shared", what: "activity FindShared of a new lockstep, which finds what runs", task: "FindShared", plan: together},
	{name: "check-plans", what: "activity CheckPlans: does the plan run that says it intends something", task: "CheckPlans", plan: together},
	{name: "begin-shared", what: "activity BeginShared, which begins the maintenances that plans share", task: "BeginShared", plan: together},
	{name: "steer-shared", what: "activity SteerShared, which tells them how far to go", task: "SteerShared", plan: together},
	{name: "target", what: "the signal of that activity", call: sends(api.SignalTarget), plan: together},
	{name: "node-progress", what: "a shared maintenance tells the lockstep how far it is", call: command(signals(api.SignalNodeProgress)), plan: together},
	{name: "plan-progress", what: "the lockstep tells a plan how far it is", call: command(signals(api.SignalPlanProgress)), plan: together},
	{name: "end-shared", what: "activity EndShared, which ends maintenances that no plan wants", task: "EndShared", plan: together},
	{name: "validate", what: "activity Validate, and its look at the node", task: "Validate"},
	{name: "before-release", what: "activity CallHook before the release, and the next request", task: "CallHook", input: `"hook":"before-release"`},
	{name: "release", what: "activity ReleaseNode, and its look at the node", task: "ReleaseNode", requests: readsNode},
	{name: "uncordon", what: "the patch that takes the mark off and brings the node back", requests: patchesNode(`"drydock.dev/holders":null`)},
	{name: "slot-release", what: "the activity gives the slot back", call: sends(api.SignalSlotRelease)},
	{name: "node-back", what: "the activity tells the plan that the node is back", call: sends(api.SignalNodeNews), plan: rolls},
	{name: "closing", what: "activity CallHook that undoes a hook, and the next request", task: "CallHook", input: `"closing":true`},
	{name: "end", what: "the maintenance completes", call: command("CompleteWorkflowExecution")},
	{name: "read-events", what: "activity ReadEvents, which asks the maintenance what a channel is to be told", task: "ReadEvents"},
	{name: "notify", what: "activity Deliver, which tells a channel, and the next request", task: "Deliver"},
	{name: "record", what: "activity KeepRecord, and the next request", task: "KeepRecord"},
	{name: "inventory", what: "activity TakeInventory of a new scheduler, and the watch of all nodes", task: "TakeInventory", requests: allNodes, rewatch: true, rebuild: true},
	{name: "query", what: "activity Query of a new scheduler, and the next request", task: "Query", rebuild: true},

	{name: "health-watch", what: "activity WatchHealth, and the watch of all nodes", task: "WatchHealth", requests: allNodes, rewatch: true, heals: byObjects},
	{name: "begin-remediation", what: "a check begins the remediation of a node", call: command(starts(api.NodeRemediationType)), heals: byObjects},
	{name: "ensure-object", what: "activity EnsureObject, and its look at the node", task: "EnsureObject", requests: readsNode, heals: byObjects},
	{name: "take-lease", what: "the creation of the node's lease", requests: onLease(http.MethodPost), heals: byObjects},
	{name: "create-object", what: "the creation of the remediation object", requests: onRemedy(http.MethodPost, ""), heals: byObjects},
	{name: "remediation-progress", what: "a remediation tells its check how far it is", call: command(signals(api.SignalRemediationProgress)), heals: byObjects},
	{name: "watch-remediation", what: "activity WatchRemediation, and its look at the object", task: "WatchRemediation", requests: onRemedy(http.MethodGet, ""), heals: byObjects},
	{name: "keep-lease", what: "activity WatchRemediation, and its look at the lease", task: "WatchRemediation", requests: onLease(http.MethodGet), heals: byObjects},
	{name: "remediation-order", what: "a check orders its remediation to go on", call: command(signals(api.SignalRemediationOrder)), heals: byObjects},
	{name: "mark-objects", what: "activity MarkObjects, and its look at the object that timed out", task: "MarkObjects", requests: onRemedy(http.MethodGet, ""), heals: byObjects},
	{name: "mark-object", what: "the patch that tells its remediator to stop", requests: onRemedy(http.MethodPatch, timedOutMark), heals: byObjects},
	{name: "remove-objects", what: "activity RemoveObjects, and its look at what is left", task: "RemoveObjects", requests: onRemedy(http.MethodGet, ""), heals: byObjects},
	{name: "delete-object", what: "the deletion of a remediation object", requests: onRemedy(http.MethodDelete, ""), heals: byObjects},
	{name: "give-lease-back", what: "the deletion of the node's lease", requests: onLease(http.MethodDelete), heals: byObjects},
	{name: "end-remediation", what: "the remediation completes", call: command("CompleteWorkflowExecution"), heals: byObjects},
	{name: "find-remediations", what: "activity FindRemediations of a new check, which finds what runs", task: "FindRemediations", rebuild: true, heals: byObjects},
	{name: "ask-for-slot", what: "the remediation of a control-plane node asks for its slot", call: command(signals(api.SignalSlotRequest)), heals: byControlPlane},
	{name: "grant-slot", what: "the scheduler grants it", call: command(signals(api.SignalSlotGranted)), heals: byControlPlane},
	{name: "ensure-with-slot", what: "activity EnsureObject, and its look at that node", task: "EnsureObject", requests: readsNode, heals: byControlPlane},
	{name: "give-slot-back", what: "the remediation gives it back", call: command(signals(api.SignalSlotRelease)), heals: byControlPlane},
	{name: "ask-for-word", what: "activity Query, by which the scheduler asks whether it did", task: "Query", heals: byControlPlane},
	{name: "lease-for-repair", what: "activity TakeLease, for a remediation by a maintenance", task: "TakeLease", requests: onLease(""), heals: byMaintenance},
	{name: "begin-repair", what: "activity BeginRepair, and its look at the node", task: "BeginRepair", requests: readsNode, heals: byMaintenance},
	{name: "await-repair", what: "activity AwaitEnds, which waits for the end of that maintenance", task: "AwaitEnds", heals: byMaintenance},
	{name: "take-out-of-service", what: "activity TakeOutOfService, and its look at the node", task: "TakeOutOfService", requests: readsNode, heals: byMaintenance},
	{name: "out-of-service", what: "the patch that taints a node as out of service", requests: patchesNode(outOfServiceTaint), heals: byMaintenance},
	{name: "await-out-of-service", what: "activity AwaitOutOfService, and its look at the node", task: "AwaitOutOfService", requests: readsNode, heals: byMaintenance},
	{name: "in-service", what: "the patch that takes that taint off", requests: takesInService, heals: byMaintenance},
	{name: "end-repair", what: "activity EndRepair: the node is healthy", task: "EndRepair", heals: byMaintenance},
}

const outOfServiceTaint = "node.kubernetes.io/out-of-service"

// takesInService recognizes a change of taints by a holder that does not mark, cordon or release the node.
func takesInService(r *request) bool {
	body := string(r.body)
	return patchesNode(`"taints":`)(r) && strings.Contains(body, `"drydock.dev/holders":"`) && !strings.Contains(body, outOfServiceTaint) &&
		!strings.Contains(body, `"unschedulable":`)
}

// onLease recognizes a request about the lease by which operators of medik8s keep off a node; no method is any.
func onLease(method string) func(*request) bool {
	return func(r *request) bool {
		return (method == "" || r.method == method) && strings.HasPrefix(r.path, "/apis/coordination.k8s.io/v1/namespaces/"+leasesNamespace+"/leases")
	}
}

// onRemedy recognizes a request about a remediation object, with a text in its body.
func onRemedy(method, with string) func(*request) bool {
	return func(r *request) bool {
		return r.method == method && strings.HasPrefix(r.path, "/apis/"+remedyVersion+"/") &&
			strings.Contains(r.path+"/", "/"+remedyResource+"/") && strings.Contains(string(r.body), with)
	}
}

func signals(name string) string { return "SignalExternalWorkflowExecution:" + name }

func starts(workflow string) string { return "StartChildWorkflowExecution:" + workflow }

// command recognizes a workflow task by one of its commands.
func command(name string) func(call) bool {
	return func(c call) bool {
		return c.method == "RespondWorkflowTaskCompleted" && slices.Contains(c.commands, name)
	}
}

func sends(signal string) func(call) bool {
	return func(c call) bool { return c.signal == signal }
}

func beats(activity string) func(call) bool {
	return func(c call) bool { return c.beats() && c.activity == activity }
}

func oneNode(r *request) bool { return strings.HasPrefix(r.path, "/api/v1/nodes/") }

func readsNode(r *request) bool { return r.method == http.MethodGet && oneNode(r) }

func patchesNode(with string) func(*request) bool {
	return func(r *request) bool {
		return r.method == http.MethodPatch && oneNode(r) && strings.Contains(string(r.body), with)
	}
}

func taints(r *request) bool {
	return patchesNode(`"taints":[{`)(r) && !strings.Contains(string(r.body), "drydock.dev/holders")
}

func showsPhase(r *request) bool {
	return patchesNode("phase")(r) && strings.HasPrefix(string(r.body), "[")
}

func tellsOfNode(r *request) bool {
	return r.method == http.MethodPost && r.path == "/api/v1/namespaces/default/events"
}

func podsOfNode(r *request) bool {
	return r.method == http.MethodGet && r.path == "/api/v1/pods" && strings.Contains(r.query.Get("fieldSelector"), "spec.nodeName")
}

func asksForPod(r *request) bool {
	return r.method == http.MethodGet && strings.Contains(r.query.Get("fieldSelector"), "metadata.name")
}

func skipsPod(who api.Message, run, pod string) (message string, payload any) {
	return api.MsgSkipPod, api.SkipPod{Message: who, Pod: pod, Run: run}
}

func consentsTo(who api.Message, run, pod string) (message string, payload any) {
	return api.MsgConsent, api.Consent{Message: who, DeleteEmptyDir: true, Pods: []string{pod}, Run: run}
}

func evicts(r *request) bool {
	return r.method == http.MethodPost && strings.HasSuffix(r.path, "/eviction")
}

func deletesPod(r *request) bool {
	return r.method == http.MethodDelete && strings.Contains(r.path, "/pods/")
}

func createsJob(r *request) bool {
	return r.method == http.MethodPost && strings.HasPrefix(r.path, "/apis/batch/v1/") && strings.HasSuffix(r.path, "/jobs")
}

func readsBudgets(r *request) bool {
	return r.method == http.MethodGet && strings.Contains(r.path, "/poddisruptionbudgets")
}
