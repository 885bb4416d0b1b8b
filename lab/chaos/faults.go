package main

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is what goes wrong.
type kind string

const (
	killWorker      kind = "kill-worker"
	cutTemporal     kind = "cut-temporal"
	restartTemporal kind = "restart-temporal"
	api429          kind = "api-429"
	api409          kind = "api-409"
	api500          kind = "api-500"
	apiTimeout      kind = "api-timeout"
	apiDrop         kind = "api-drop"

	resetMaintenance kind = "reset-maintenance"
	resetScheduler   kind = "reset-scheduler"
	poison           kind = "poison"
	foreign          kind = "foreign"
	foreignWorker    kind = "foreign-worker"
	foreignCaller    kind = "foreign-caller"

	resetLockstep     kind = "reset-lockstep"
	terminateLockstep kind = "terminate-lockstep"

	resetRemediation     kind = "reset-remediation"
	terminateRemediation kind = "terminate-remediation"
	resetCheck           kind = "reset-check"
	terminateCheck       kind = "terminate-check"
	kubeletBack          kind = "kubelet-back"

	resetProfiles       kind = "reset-profiles"
	terminateProfiles   kind = "terminate-profiles"
	resetTransition     kind = "reset-transition"
	terminateTransition kind = "terminate-transition"

	killCaller      kind = "kill-caller"
	resetCaller     kind = "reset-caller"
	terminateCaller kind = "terminate-caller"

	killBridge       kind = "kill-bridge"
	deleteObject     kind = "delete-object"
	deleteDefinition kind = "delete-definition"
	loseLease        kind = "lose-lease"

	stripMark         kind = "strip-mark"
	liftCordon        kind = "lift-cordon"
	expireCredentials kind = "expire-credentials"
)

// kinds are all of them, in the order of the matrix's columns.
var kinds = []kind{
	killWorker, cutTemporal, restartTemporal, api429, api409, api500, apiTimeout, apiDrop,
	resetMaintenance, resetScheduler, poison, foreign, foreignWorker, foreignCaller, stripMark, liftCordon, expireCredentials, resetLockstep, terminateLockstep,
	resetRemediation, terminateRemediation, resetCheck, terminateCheck, kubeletBack,
	resetProfiles, terminateProfiles, resetTransition, terminateTransition, killBridge, deleteObject, deleteDefinition, loseLease,
	killCaller, resetCaller, terminateCaller,
}

// onAPI means that the API server's answer is what goes wrong.
func (k kind) onAPI() bool { return len(k) > 4 && k[:4] == "api-" }

// onHealth means that a workflow of health checks is what it happens to, or a node that is being remediated.
func (k kind) onHealth() bool {
	return slices.Contains([]kind{resetRemediation, terminateRemediation, resetCheck, terminateCheck, kubeletBack}, k)
}

// onProfiles means that a workflow of profiles is what it happens to.
func (k kind) onProfiles() bool {
	return slices.Contains([]kind{resetProfiles, terminateProfiles, resetTransition, terminateTransition}, k)
}

// onCaller means that a workflow of somebody else's that has nodes maintained is what it happens to, or its worker.
func (k kind) onCaller() bool {
	return slices.Contains([]kind{killCaller, resetCaller, terminateCaller}, k)
}

// onObjects means that the bridge is what it happens to, or an object that it serves.
func (k kind) onObjects() bool { return k == killBridge || k == loseLease || k.deletes() }

// deletes means that an object is deleted while its maintenance may run.
func (k kind) deletes() bool { return k == deleteObject || k == deleteDefinition }

// when is the side of a step's effect on which something goes wrong.
type when string

const (
	before when = "before"
	after  when = "after"
)

const (
	// cutFor is how long Temporal is out of reach, or refuses the worker's credentials.
	cutFor = 20 * time.Second
	// downFor is how long a killed Temporal server stays down.
	downFor = 2 * time.Second
	// hangFor is how long the API server does not answer. It is longer than the 30 s that a short activity may take and
	// than the 10 s without a heartbeat after which a long one is taken for lost.
	hangFor = 33 * time.Second
)

// cell is one place of the matrix: one fault. The zero value is a run without one.
type cell struct {
	step step
	when when
	kind kind
}

func (c cell) String() string { return fmt.Sprintf("%s/%s/%s", c.step.name, c.when, c.kind) }

// answer is what the API server is made to say in place of its own word.
func (k kind) answer() *apierrors.StatusError {
	switch k {
	case api429:
		return apierrors.NewTooManyRequests("chaos: too many requests, please try again later", 1)
	case api409:
		return apierrors.NewConflict(schema.GroupResource{Resource: "chaos"}, "any", fmt.Errorf("chaos: the object has been modified"))
	case api500:
		return apierrors.NewInternalError(fmt.Errorf("chaos"))
	default:
		return apierrors.NewTimeoutError("chaos: request did not complete within the allotted timeout", 0)
	}
}

// trap waits for a step in a lane's traffic and lets one fault happen there.
type trap struct {
	cell cell
	// strike is what is done to a process, a connection or a workflow; nil if the API server's answer is the fault.
	strike func() error
	// armed is called when a fault of the API server is to follow from here on.
	armed func()

	mu     sync.Mutex
	ready  bool
	struck bool
	where  string
	caught chan struct{}
	// done is closed when the strike is over, problem is why it could not be done.
	done    chan struct{}
	problem error
}

// take springs the trap, once.
func (t *trap) take(where string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.struck {
		return false
	}
	t.struck, t.where = true, where
	close(t.caught)
	return true
}

// hit ends what the fault is to end.
func (t *trap) hit() {
	defer close(t.done)
	if t.strike != nil {
		t.problem = t.strike()
	}
}

// place is where the fault happened, empty if it did not, or where the run had failed before the trap was set.
func (t *trap) place() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.where
}

// call shows the trap a call between worker and Temporal on one side of its effect.
func (t *trap) call(c call, side when) {
	if !t.cell.step.isCall(c) {
		return
	}
	if !t.cell.kind.onAPI() {
		if side == t.cell.when && t.take(fmt.Sprintf("%s %s", side, c)) {
			t.hit()
		}
		return
	}
	// An activity's requests follow its task; what follows a call follows it on the chosen side.
	if t.cell.step.task != "" && side != before || t.cell.step.task == "" && side != t.cell.when {
		return
	}
	t.mu.Lock()
	first := !t.ready
	t.ready = true
	t.mu.Unlock()
	if first && t.armed != nil {
		t.armed()
	}
}

// request reports whether this request to the API server is the one.
func (t *trap) request(r *request) bool {
	if !t.cell.kind.onAPI() && !t.cell.step.atRequest() {
		return false
	}
	t.mu.Lock()
	ready := t.ready
	t.mu.Unlock()
	return ready && t.cell.step.isRequest(r) && t.take(fmt.Sprintf("%s %s", t.cell.when, r))
}

// spoil gives a request the fault in place of an answer.
func (t *trap) spoil(w http.ResponseWriter, r *http.Request) {
	t.hit()
	switch t.cell.kind {
	case apiDrop:
		hangUp(r)
	case apiTimeout:
		select {
		case <-time.After(hangFor):
		case <-r.Context().Done():
		}
		fallthrough
	default:
		writeStatus(w, t.cell.kind.answer().Status())
	}
}

// switchboard is where a lane's proxies find the trap that is set, nil for none.
type switchboard struct{ atomic.Pointer[trap] }
