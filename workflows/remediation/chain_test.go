package remediation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
)

// chain is a remediation over many runs. Its check repeats each order until it is acknowledged.
type chain struct {
	*site
	orders map[time.Duration]health.Order
	// every is after how many events a run continues as new, 0 never. resetAt is when a run finds that it came by reset, 0 never.
	every   int
	resetAt time.Duration
	runs    int
	resets  int
}

// live runs the remediation to its end. The first run hands over at once, so that those that follow know after how many events to do so.
func (c *chain) live() (p health.Progress) {
	c.t.Helper()
	var packed []byte
	for now := c.start; ; now = c.env.Now() {
		c.begin(now)
		c.env.ExecuteWorkflow(api.NodeRemediationType, c.in, packed)
		var next *workflow.ContinueAsNewError
		err := c.env.GetWorkflowError()
		if !errors.As(err, &next) {
			if err == nil {
				err = c.env.GetWorkflowResult(&p)
			}
			if err != nil {
				c.t.Fatal(err)
			}
			return p
		}
		var input converter.RawValue
		if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &packed); err != nil {
			c.t.Fatal(err)
		}
		if c.runs++; c.runs == 1 {
			packed = c.told(packed)
		} else if c.runs > 300 {
			c.t.Fatal("it continues as new without end")
		}
	}
}

// told is a state that knows after how many events a run continues as new.
func (c *chain) told(packed []byte) []byte {
	c.t.Helper()
	fields := map[string]any{}
	err := api.Unpack(packed, &fields)
	if err == nil {
		fields["continueAfter"] = c.every
		packed, err = api.Pack(fields)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return packed
}

// resetPlace is the length of the history at the reset.
const resetPlace = 1000

// versionAt is the version of a change: only that of the reset is new.
func versionAt(change string, _, _ workflow.Version) workflow.Version {
	if change == fmt.Sprintf("reset-at-%d", resetPlace) {
		return 1
	}
	return workflow.DefaultVersion
}

func (c *chain) begin(now time.Time) {
	c.site.begin(now)
	if c.runs == 0 {
		c.env.SetContinueAsNewSuggested(true)
	} else {
		c.env.SetContinuedExecutionRunID(checkRun)
	}
	c.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}, &controllertest.AsReset{}},
	})
	c.env.RegisterActivity(call.Executions)
	c.env.OnActivity(call.Executions.ThisRun, mock.Anything).Return("this run", nil)
	c.env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(versionAt)
	env := c.env
	if c.resetAt > 0 && c.resets == 0 && c.runs > 0 {
		env.RegisterDelayedCallback(func() {
			if !env.IsWorkflowCompleted() {
				c.resets++
				env.SetCurrentHistoryLength(resetPlace)
				env.SignalWorkflow("no-such-message", nil)
			}
		}, max(c.start.Add(c.resetAt).Sub(now), time.Nanosecond))
	}
	for at := time.Duration(0); at < 10*time.Minute; at += 5 * time.Second {
		if wait := c.start.Add(at).Sub(now); wait > 0 {
			env.RegisterDelayedCallback(func() { c.repeatOrder(at) }, wait)
		}
	}
}

// repeatOrder sends the latest order unless it was acknowledged.
func (c *chain) repeatOrder(at time.Duration) {
	var latest health.Order
	for since, o := range c.orders {
		if since <= at && o.Revision > latest.Revision {
			latest = o
		}
	}
	c.mu.Lock()
	acknowledged := slices.ContainsFunc(c.said, func(p health.Progress) bool { return p.Revision >= latest.Revision })
	c.mu.Unlock()
	if !acknowledged && !c.env.IsWorkflowCompleted() {
		order := api.RemediationOrder{Check: "workers", CheckRunID: checkRun, Report: true, Order: latest}
		c.env.SignalWorkflow(api.SignalRemediationOrder, order)
	}
}

// remediates runs a remediation whose first step times out, and whose second heals the node.
func remediates(t *testing.T, every int, resetAt time.Duration) {
	t.Helper()
	c := &chain{site: newSite(t, template("soft"), template("hard")), every: every, resetAt: resetAt}
	c.orders = map[time.Duration]health.Order{
		2 * time.Minute: {Node: "b", Revision: 2, Step: 1, TimedOut: []int{0}},
		5 * time.Minute: {Node: "b", Revision: 3, Step: 1, TimedOut: []int{0}, Healthy: true},
	}
	for i := range 12 { // what is seen changes each time
		objects := []activity.ObjectSeen{{Message: fmt.Sprint(i)}}
		c.seen(25*time.Second, activity.RemediationSeen{Lease: activity.LeaseState{Held: true}, Objects: objects})
	}
	p := c.live()
	made := slices.DeleteFunc(slices.Clone(c.log), func(entry string) bool { return !strings.Contains(entry, " make ") })
	once := slices.Equal(made, []string{"0s make step 1", "2m0s make step 2"})
	if !once || len(c.objects) > 0 || !p.Ended || !p.Recovered || p.Failure != "" {
		t.Errorf("every %d, reset at %s, %d runs: %+v, log %q, left %v", every, resetAt, c.runs, p, c.log, c.objects)
	}
	if (c.runs > 1) != (every > 0) || (c.resets > 0) != (resetAt > 0) {
		t.Errorf("every %d, reset at %s: %d runs, %d resets", every, resetAt, c.runs, c.resets)
	}
}

func TestARemediationGoesOnOverManyRuns(t *testing.T) {
	for _, every := range []int{0, 1, 2, 3, 5, 7, 11} {
		remediates(t, every, 0)
	}
}

// An activity takes 20 ms: at some of these times one is under way.
func TestARemediationThatIsResetGoesOn(t *testing.T) {
	const little, order, healthy = 10 * time.Millisecond, 2 * time.Minute, 5 * time.Minute
	for _, every := range []int{0, 1, 3} {
		for _, at := range []time.Duration{
			little, 3 * little, time.Minute, order + little, order + 3*little, order + 5*little, 4 * time.Minute, healthy + little,
		} {
			remediates(t, every, at)
		}
	}
}
