package health

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"drydock.dev/drydock/api"
)

const (
	// takenOverWithin is how soon after its start a new worker sees what happens, on a machine that runs other tests too. A watch
	// that nobody takes over is begun anew after its heartbeat timeout of 5 minutes.
	takenOverWithin = 40 * time.Second
	// freshAttempt is how long ago a watch may have been begun, or have sent a heartbeat, when its worker is killed: the server
	// waits for the next one for nearly the whole timeout then.
	freshAttempt = 10 * time.Second
)

// TestAWorkerThatStartsTakesOverTheWatches kills the only worker, has a node become NotReady while none runs, and starts another
// worker. A third one, which starts beside it, restarts the watch of a worker that lives.
func TestAWorkerThatStartsTakesOverTheWatches(t *testing.T) {
	c := newClinic(t, 4, "")
	template := c.template(fence, "fence", nil)
	c.StartWorker()
	g := c.check("taken", 4, `"unhealthyConditions":[{"type":"Ready","status":"False","duration":"1s"},{"type":"Ready","status":"Unknown","duration":"1s"}],
		"remediationTemplate":`+template+`,"minHealthy":1`)
	g.well()
	killed := g.freshWatch()
	first := g.Worker
	first.Kill()
	g.Ready(g.nodes[0], false)
	started := time.Now()
	g.StartWorker()
	g.remediated(fence, g.nodes[0])
	if took := time.Since(started); took > takenOverWithin {
		t.Errorf("the node was remediated %s after the new worker had started", took)
	}

	// The second worker lives: its watch is begun anew without a report, and sees what happens all the same.
	before := g.freshWatch()
	if before.GetLastWorkerIdentity() == killed.GetLastWorkerIdentity() {
		t.Errorf("the watch is still with %s", before.GetLastWorkerIdentity())
	}
	second := g.Worker
	defer g.StopWorker(second)
	g.StartWorker()
	g.Eventually("the watch is begun anew", func() error {
		now, err := g.watch()
		if err == nil && now.GetActivityId() == before.GetActivityId() && now.GetAttempt() == before.GetAttempt() {
			err = fmt.Errorf("activity %s is at attempt %d still", now.GetActivityId(), now.GetAttempt())
		}
		return err
	})
	started = time.Now()
	g.Ready(g.nodes[1], false)
	g.remediated(fence, g.nodes[1])
	if took := time.Since(started); took > takenOverWithin {
		t.Errorf("the next node was remediated %s after it became NotReady", took)
	}
	for _, node := range g.nodes[:2] {
		if made := g.creations(node); made != 1 {
			t.Errorf("%d objects were made for %s", made, node)
		}
	}
}

// noticedWithin is how soon a worker that lives begins the watches of a dead one anew, on a machine that runs other tests too.
const noticedWithin = 75*time.Second + 15*time.Second

// TestSlowWorkersThatLiveTakeOverTheWatchesOfADeadOne kills that of two workers which watches, and starts none.
func TestSlowWorkersThatLiveTakeOverTheWatchesOfADeadOne(t *testing.T) {
	c := newClinic(t, 4, "")
	template := c.template(fence, "fence", nil)
	c.StartWorker()
	first := c.Worker
	g := c.check("left", 4, `"unhealthyConditions":[{"type":"Ready","status":"False","duration":"1s"},{"type":"Ready","status":"Unknown","duration":"1s"}],
		"remediationTemplate":`+template+`,"minHealthy":1`)
	g.well()
	before := g.freshWatch()
	g.StartWorker()
	second := g.Worker
	g.Eventually("the second worker has begun the watch anew", func() error {
		now, err := g.watch()
		if err == nil && now.GetActivityId() == before.GetActivityId() && now.GetAttempt() == before.GetAttempt() {
			err = fmt.Errorf("it is at attempt %d still", now.GetAttempt())
		}
		return err
	})
	watch := g.freshWatch()
	dies, lives := first, second
	if strings.HasPrefix(watch.GetLastWorkerIdentity(), fmt.Sprint(second.PID())+"@") {
		dies, lives = second, first
	}
	g.Worker = lives
	defer g.StopWorker(lives)
	dies.Kill()
	killed := time.Now()
	g.Ready(g.nodes[0], false)
	g.Within(noticedWithin, "the watch is begun anew", func() error {
		now, err := g.watch()
		if err == nil && now.GetLastWorkerIdentity() == watch.GetLastWorkerIdentity() {
			err = fmt.Errorf("it is with %s still", now.GetLastWorkerIdentity())
		}
		return err
	})
	t.Logf("the watch was begun anew %s after its worker was killed", time.Since(killed).Round(time.Second))
	g.remediated(fence, g.nodes[0])
}

// watch is the attempt that watches the nodes for the check.
func (g *group) watch() (*workflowpb.PendingActivityInfo, error) {
	described, err := g.Temporal.DescribeWorkflowExecution(g.Ctx, api.HealthCheckID(g.Cluster, g.name), "")
	if err != nil {
		return nil, err
	}
	for _, a := range described.GetPendingActivities() {
		if a.GetActivityType().GetName() == "WatchHealth" {
			return a, nil
		}
	}
	return nil, errors.New("no watch is under way")
}

// freshWatch waits until the watch has been begun, or has sent a heartbeat, a moment ago.
func (g *group) freshWatch() (watch *workflowpb.PendingActivityInfo) {
	g.Helper()
	g.Eventually("the watch has sent a heartbeat a moment ago", func() (err error) {
		if watch, err = g.watch(); err != nil {
			return err
		}
		last := watch.GetLastStartedTime().AsTime()
		if beat := watch.GetLastHeartbeatTime(); beat != nil {
			last = beat.AsTime()
		}
		if age := time.Since(last); age > freshAttempt {
			return fmt.Errorf("it was %s ago", age)
		}
		return nil
	})
	return watch
}
