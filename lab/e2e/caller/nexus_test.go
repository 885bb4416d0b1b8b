package caller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/maintain"
)

// tenant is a namespace of its own, from which a workflow has nodes maintained by Nexus, with a service of its own that works on them.
type tenant struct {
	*site.Site
	client.Client
	before map[string]string
	works
}

// serving is the configuration of a worker that serves the tenant.
const serving = "scheduler: {maxParallel: 4}\nnexus: {endpoint: drydock, work: [firmware]}\n"

// temporalWithNexus is a server of the test's own: few need one that has an HTTP API.
func temporalWithNexus(t *testing.T) *devstack.Temporal {
	t.Helper()
	server, err := devstack.StartTemporal(context.Background(), devstack.TemporalOptions{
		Dir: filepath.Join(t.TempDir(), "temporal"), Attributes: true, InMemory: true, Args: []string{"--nexus"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(server.Process) })
	return server
}

// newTenant has a service and a workflow in the tenant's namespace.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	n := newNamespace(t)
	w := worker.New(n.Client, "firmware", worker.Options{WorkerStopTimeout: time.Second})
	service := nexus.NewService("firmware")
	service.MustRegister(temporalnexus.NewWorkflowRunOperation("flash", n.flash,
		func(_ context.Context, held api.NexusHeld, _ nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{
				ID: "flash/" + held.Node, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			}, nil
		}))
	w.RegisterNexusService(service)
	w.RegisterWorkflowWithOptions(n.flash, workflow.RegisterOptions{Name: "Flash"})
	w.RegisterActivity(n.work)
	w.RegisterWorkflowWithOptions(upgrade, workflow.RegisterOptions{Name: "Upgrade"})
	n.Eventually("the tenant's worker has begun", w.Start)
	t.Cleanup(w.Stop)
	return n
}

// newNamespace makes the tenant's namespace and endpoint. The endpoint of Drydock's is made by drydock setup.
func newNamespace(t *testing.T) *tenant {
	t.Helper()
	t.Parallel()
	s := site.PrepareOf(t, site.Shared.Lanes.Take(t), temporalWithNexus(t), serving)
	s.StartWorker()
	n := &tenant{Site: s, before: s.Imprints(), works: newWorks()}
	config := filepath.Join(t.TempDir(), "worker.yaml")
	err := os.WriteFile(config, []byte("cluster: "+s.Cluster+"\n"+serving), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.MustDrydock("setup", "--apply", "--skip-kubernetes", "--config", config)
	_, err = s.Temporal.WorkflowService().RegisterNamespace(s.Ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: "tenant", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Temporal.OperatorService().CreateNexusEndpoint(s.Ctx, &operatorservice.CreateNexusEndpointRequest{Spec: &nexuspb.EndpointSpec{
		Name: "firmware", Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
			Worker: &nexuspb.EndpointTarget_Worker{Namespace: "tenant", TaskQueue: "firmware"},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.Client, err = client.Dial(client.Options{HostPort: s.Options.Temporal.Address, Namespace: "tenant", Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Client.Close)
	return n
}

// upgrade is the caller: it asks for an operation, and knows nothing of Drydock but the contract.
func upgrade(ctx workflow.Context, operation string, request map[string]any) (result map[string]any, err error) {
	err = workflow.NewNexusClient("drydock", "drydock").ExecuteOperation(ctx, operation, request, workflow.NexusOperationOptions{
		CancellationType: workflow.NexusOperationCancellationTypeWaitCompleted,
	}).Get(ctx, &result)
	return result, err
}

// flash is the workflow of the operation that works on a node.
func (n *tenant) flash(ctx workflow.Context, held api.NexusHeld) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: site.TestTime, HeartbeatTimeout: 3 * time.Second, WaitForCancellation: true})
	return "flashed", workflow.ExecuteActivity(ctx, n.work, held.Node).Get(ctx, nil)
}

func (n *tenant) work(ctx context.Context, node string) error { return n.works.work(ctx, n.Site, node) }

func (n *tenant) isAtWork(times int) {
	n.Helper()
	n.works.isAtWork(n.Site, times)
}

func (n *tenant) ask(operation string, request map[string]any) client.WorkflowRun {
	n.Helper()
	var run client.WorkflowRun
	n.Eventually("the caller's workflow is started", func() (err error) { // a new namespace is not known at once
		run, err = n.Client.ExecuteWorkflow(n.Ctx, client.StartWorkflowOptions{
			ID: operation, TaskQueue: "firmware", WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, "Upgrade", operation, request)
		return err
	})
	return run
}

func (n *tenant) result(run client.WorkflowRun) (result map[string]any, err error) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Ctx, site.Patience)
	defer cancel()
	err = n.Client.GetWorkflow(ctx, run.GetID(), "").Get(ctx, &result)
	return result, err
}

var flash = map[string]any{"endpoint": "firmware", "service": "firmware", "operation": "flash"}

// A workflow of another namespace has a node maintained, and works on it by an operation of its own. It is reset during that.
func TestANodeIsMaintainedByNexus(t *testing.T) {
	n := newTenant(t)
	run := n.ask(api.NexusMaintainNode, map[string]any{"maintenance": map[string]any{"node": "worker-01", "reason": "BIOS 2.4"}, "work": flash})
	n.isAtWork(1)
	requestor := maintain.RequestorOf("tenant/" + run.GetID())
	status := n.Until(n.Temporal.GetWorkflow(n.Ctx, api.MaintenanceID(n.Cluster, "worker-01", requestor), ""), api.Ready)
	if status.Spec.Reason != "BIOS 2.4" {
		t.Errorf("the maintenance has reason %q", status.Spec.Reason)
	}
	described, err := n.Client.DescribeWorkflowExecution(n.Ctx, run.GetID(), "")
	if err != nil || len(described.GetPendingNexusOperations()) != 1 || described.GetPendingNexusOperations()[0].GetOperationToken() == "" {
		t.Errorf("the caller waits for %v (%v)", described.GetPendingNexusOperations(), err)
	}
	if _, err := n.Client.ResetWorkflowExecution(n.Ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "tenant", WorkflowExecution: described.GetWorkflowExecutionInfo().GetExecution(), WorkflowTaskFinishEventId: 4,
		RequestId: "again", Reason: "test",
	}); err != nil {
		t.Fatal(err)
	}
	n.ends <- nil
	result, err := n.result(run)
	if err != nil || result["phase"] != "Completed" || result["node"] != "worker-01" {
		t.Fatalf("it ended with %v, %v", result, err)
	}
	n.Back("worker-01", n.before["worker-01"])
	if len(n.states()) != 1 {
		t.Errorf("the work was begun %q", n.states())
	}
}

func TestAPlanRunsByNexus(t *testing.T) {
	n := newTenant(t)
	run := n.ask(api.NexusRunPlan, map[string]any{
		"plan": map[string]any{"nodes": []string{"worker-01", "worker-02"}, "strategy": map[string]any{"maxParallel": 2}}, "name": "bios", "work": flash,
	})
	n.isAtWork(2)
	n.ends <- nil
	n.ends <- nil
	result, err := n.result(run)
	if err != nil || result["phase"] != "Completed" || result["name"] != "bios" {
		t.Fatalf("it ended with %v, %v", result, err)
	}
	n.Back("worker-01", n.before["worker-01"])
	n.Back("worker-02", n.before["worker-02"])
}

// A cancelled operation cancels the work and the maintenance, also where nothing of the caller's works on the node.
func TestACancelledOperationGivesTheNodeBack(t *testing.T) {
	n := newTenant(t)
	node := map[string]any{"node": "worker-01", "requestor": "tenant"}
	for _, request := range []map[string]any{{"maintenance": node, "work": flash, "giveBackOnCancel": true}, {"maintenance": node}} {
		run := n.ask(api.NexusMaintainNode, request)
		if request["work"] != nil {
			n.isAtWork(1)
		}
		n.Eventually("the operation has begun", func() error {
			described, err := n.Client.DescribeWorkflowExecution(n.Ctx, run.GetID(), "")
			if err == nil && (len(described.GetPendingNexusOperations()) == 0 || described.GetPendingNexusOperations()[0].GetOperationToken() == "") {
				err = errors.New("not yet")
			}
			return err
		})
		if err := n.Client.CancelWorkflow(n.Ctx, run.GetID(), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := n.result(run); err == nil || !strings.Contains(err.Error(), "canceled") {
			t.Errorf("%v ended with %v", request, err)
		}
		n.Back("worker-01", n.before["worker-01"])
	}
}

func TestANodeIsCheckedByNexusAndBadRequestsAreRefused(t *testing.T) {
	n := newTenant(t)
	result, err := n.result(n.ask(api.NexusCheckNode, map[string]any{"maintenance": map[string]any{"node": "worker-01"}}))
	if err != nil || result["node"] != "worker-01" {
		t.Errorf("it ended with %v, %v", result, err)
	}
	for want, request := range map[string]map[string]any{
		"maintenance.node":                    {"maintenance": map[string]any{"node": "a/b"}},
		"maintenance, plan: one of them":      {},
		"work.endpoint: \"elsewhere\" is not": {"maintenance": map[string]any{"node": "worker-01"}, "work": map[string]any{"endpoint": "elsewhere", "service": "s", "operation": "o"}},
		"unknown field":                       {"maintenance": map[string]any{"node": "worker-01"}, "wok": flash},
		"drain.frce":                          {"maintenance": map[string]any{"node": "worker-01", "drain": map[string]any{"frce": true}}},
	} {
		_, err := n.result(n.ask(api.NexusMaintainNode, request))
		if err == nil || !strings.Contains(fmt.Sprint(err, errors.Unwrap(err)), want) {
			t.Errorf("%v ended with %v, and not %s", request, err, want)
		}
	}
}

// The example of a caller by Nexus: its worker and Drydock's are killed while it works, and its workflow is reset.
func TestAnUpgradeByNexusSurvivesItsWorkers(t *testing.T) {
	n := newNamespace(t)
	program, log := filepath.Join(t.TempDir(), "nexus"), filepath.Join(t.TempDir(), "log")
	if output, err := exec.CommandContext(n.Ctx, "go", "build", "-o", program, "drydock.dev/drydock/examples/nexus").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	// A command whose worker was killed goes on beside the next one, which waits for it, and flashes no node twice.
	command := strings.ReplaceAll(`exec 9>"LOG.$1"; flock 9; grep -qx "$1 flashed" LOG 2>/dev/null && exit 0; echo "$1 begun" >>LOG; sleep 2; echo "$1 flashed" >>LOG`, "LOG", log)
	start := func() *exec.Cmd {
		w := exec.CommandContext(n.Ctx, program, "sh", "-c", command, "flash", "{node}")
		w.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+n.Options.Temporal.Address, "TEMPORAL_NAMESPACE=tenant")
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	kill := func(w *exec.Cmd) {
		if err := w.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.Wait() // it says that it was killed
	}
	lines := func(what string, times int) {
		n.Eventually(fmt.Sprintf("%d nodes are %s", times, what), func() error {
			text, err := os.ReadFile(log)
			if got := strings.Count(string(text), " "+what+"\n"); err == nil && got < times {
				err = fmt.Errorf("%d so far", got)
			}
			return err
		})
	}
	nodes := []string{"worker-01", "worker-02", "worker-03"}
	var run client.WorkflowRun
	n.Eventually("the workflow is started", func() (err error) { // a new namespace is not known at once
		run, err = n.Client.ExecuteWorkflow(n.Ctx, client.StartWorkflowOptions{
			ID: "bios", TaskQueue: "firmware", WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, "Upgrade", map[string]any{"nodes": nodes, "reason": "BIOS 2.4"})
		return err
	})
	w := start()
	lines("begun", 1)
	kill(w)
	n.Worker.Kill()
	n.StartWorker()
	w = start()
	lines("flashed", 1)
	if _, err := n.Client.ResetWorkflowExecution(n.Ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "tenant", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}, WorkflowTaskFinishEventId: 4,
		RequestId: "again", Reason: "test",
	}); err != nil {
		t.Fatal(err)
	}
	result, err := n.result(run)
	if err != nil || result["phase"] != "Completed" {
		t.Fatalf("it ended with %v, %v", result, err)
	}
	kill(w)
	lines("flashed", len(nodes))
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		n.Back(node, n.before[node])
		if times := strings.Count(string(text), node+" flashed\n"); times != 1 {
			t.Errorf("%s was flashed %d times", node, times)
		}
	}
}

// What somebody else has started is neither joined nor cancelled: a person's maintenance, and one of the same caller for another request.
func TestWhatSomebodyElseHasStartedIsLeftAlone(t *testing.T) {
	n := newTenant(t)
	n.MustDrydock("start", "worker-01", "--requestor", "ops")
	theirs := n.Temporal.GetWorkflow(n.Ctx, api.MaintenanceID(n.Cluster, "worker-01", "ops"), "")
	n.Until(theirs, api.Ready)
	asked := map[string]any{"maintenance": map[string]any{"node": "worker-01", "requestor": "ops"}}
	if _, err := n.result(n.ask(api.NexusMaintainNode, asked)); err == nil || !strings.Contains(fmt.Sprint(err, errors.Unwrap(err)), "was not started by this request") {
		t.Errorf("it ended with %v", err)
	}
	if status := n.MustStatus(theirs); status.Phase != api.Ready {
		t.Errorf("theirs is %s", status.Phase)
	}
	n.MustDrydock("done", "worker-01", "--requestor", "ops", "--wait")
	n.Back("worker-01", n.before["worker-01"])
}
