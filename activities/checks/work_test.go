package checks

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	httpcheck "drydock.dev/drydock/checks/http"
	jobcheck "drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

// power is work that has a server restart nodes, and the activities that do it to a node that the test's maintenance holds.
func power(t *testing.T, handler http.HandlerFunc, node *corev1.Node) (*Activities, k8stest.Fake, *checkstest.Seen) {
	t.Helper()
	server, kube := checkstest.Serve(t, handler), k8stest.NewFake(node)
	hook := checkstest.Hook("http", &httpcheck.Config{URL: server.URL + "/restart/{{.Node}}"})
	runner, err := checks.New(checks.Config{Work: checks.Works{
		"power": {Actions: hook.Actions, WorkSettings: checks.WorkSettings{Success: validation.SuccessByBootID}},
	}}, kube, "test")
	if err != nil {
		t.Fatal(err)
	}
	return &Activities{Client: kube, Runner: runner}, kube, server
}

func held(bootID string) *corev1.Node {
	node := activitytest.HeldNode()
	node.Status.NodeInfo.BootID = bootID
	return node
}

func powerInput(limit time.Duration) WorkInput {
	return WorkInput{
		Work: "power", Key: "key-1", NewBootID: true, BootIDBefore: "boot-1", For: period.Duration(limit),
		Subject: checks.Subject{Node: "n1", RunID: activitytest.RunID},
	}
}

func TestARestartIsAskedForOnceAndSeen(t *testing.T) {
	c, kube, server := power(t, checkstest.Answering(http.StatusAccepted, "restarting"), held("boot-1"))
	begun, err := activitytest.Call(t, c.BeginWork, powerInput(0))
	if err != nil || begun.BootID != "boot-1" || len(server.Got) != 0 {
		t.Fatalf("%+v, %v", begun, err)
	}
	server.Config.Handler = restarting(t, kube, server.Config.Handler)
	ended, err := activitytest.Call(t, c.AwaitWork, powerInput(time.Minute))
	if err != nil || !ended.OK || !strings.Contains(ended.Message, "boot ID boot-2, before boot-1") || ended.Output != "restarting" {
		t.Errorf("%+v, %v", ended, err)
	}
	if len(server.Got) != 1 || server.Got[0].Header.Get("Idempotency-Key") != "key-1" {
		t.Errorf("%d calls", len(server.Got))
	}
	// Another attempt after that finds the node restarted, and calls nobody.
	if _, err := activitytest.Call(t, c.AwaitWork, powerInput(time.Minute)); err != nil || len(server.Got) != 1 {
		t.Errorf("%d calls, %v", len(server.Got), err)
	}
}

// restarting has the node restarted by whoever calls.
func restarting(t *testing.T, kube k8stest.Fake, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := kube.All.CoreV1().Nodes().Update(t.Context(), held("boot-2"), metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		next.ServeHTTP(w, r)
	})
}

func TestANodeThatIsNotRestartedInTime(t *testing.T) {
	c, _, _ := power(t, checkstest.Answering(http.StatusServiceUnavailable, "no power"), held("boot-1"))
	ended, err := activitytest.Call(t, c.AwaitWork, powerInput(time.Millisecond))
	if err != nil || ended.OK || !strings.HasPrefix(ended.Message, "the node was not restarted: its boot ID is boot-1 as before after 1ms") {
		t.Errorf("%+v, %v", ended, err)
	}
	ended, err = activitytest.Call(t, c.AwaitWork, powerInput(time.Second))
	if err != nil || ended.OK || !strings.Contains(ended.Message, "no power") {
		t.Errorf("%+v, %v", ended, err)
	}
}

func TestOnlyANodeThatIsHeldIsWorkedOn(t *testing.T) {
	c, _, server := power(t, checkstest.Answering(http.StatusOK, ""), activitytest.Node("n1"))
	if _, err := activitytest.Call(t, c.BeginWork, powerInput(0)); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("begun on a node without a mark, or for good: %v", err)
	}
	ended, err := activitytest.Call(t, c.AwaitWork, powerInput(time.Second))
	if err != nil || ended.OK || len(server.Got) != 0 {
		t.Errorf("%+v, %v, %d calls", ended, err, len(server.Got))
	}
}

func TestANodeWithoutABootIDCannotBeSeenToRestart(t *testing.T) {
	c, _, _ := power(t, checkstest.Answering(http.StatusOK, ""), held(""))
	if _, err := activitytest.Call(t, c.BeginWork, powerInput(0)); activitytest.ErrorType(err) != api.ErrorHookFailed {
		t.Error(err)
	}
}

// flashing is work by a Job, and the activities that do it to a node that the test's maintenance holds.
func flashing(t *testing.T, success validation.Success) (*Activities, k8stest.Fake) {
	t.Helper()
	kube := k8stest.NewFake(held("boot-1"))
	hook := checkstest.Hook("job", &jobcheck.Config{Namespace: "jobs", TemplateFile: checkstest.File(t, `{apiVersion: batch/v1, kind: Job,
		spec: {template: {spec: {restartPolicy: Never, containers: [{name: flash, image: flash}]}}}}`)})
	runner, err := checks.New(checks.Config{Work: checks.Works{
		"power": {Actions: hook.Actions, WorkSettings: checks.WorkSettings{Success: success}},
	}}, kube, "test")
	if err != nil {
		t.Fatal(err)
	}
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
	})
	return &Activities{Client: kube, Temporal: temporal, Runner: runner}, kube
}

// Whoever took the node back may have looked for Jobs before this one was created.
func TestWorkBegunForAMaintenanceThatWasTerminatedMeanwhileIsEnded(t *testing.T) {
	c, kube := flashing(t, validation.OwnSuccess)
	c.Temporal = activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	})
	if _, err := activitytest.Call(t, c.BeginWork, powerInput(0)); activitytest.ErrorType(err) != api.ErrorHookFailed || !strings.Contains(err.Error(), "does not run any more") {
		t.Errorf("begun: %v", err)
	}
	if left, err := kube.BatchV1().Jobs("jobs").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		t.Errorf("%d Jobs are left, %v", len(left.Items), err)
	}
}

// What has not ended in its time is ended, so that the next attempt never runs beside it.
func TestWorkThatIsOverdueIsEnded(t *testing.T) {
	for _, success := range []validation.Success{validation.OwnSuccess, validation.SuccessByBootID} {
		t.Run(string(success), func(t *testing.T) {
			c, kube := flashing(t, success)
			in := powerInput(time.Millisecond)
			in.NewBootID = success == validation.SuccessByBootID
			begun, err := activitytest.Call(t, c.BeginWork, in)
			if err != nil {
				t.Fatal(err)
			}
			ended, err := activitytest.Call(t, c.AwaitWork, in)
			if err != nil || ended.OK || !strings.Contains(ended.Message, "Job "+begun.Job+" has not ended") || !strings.HasSuffix(ended.Message, "and was deleted") {
				t.Errorf("%+v, %v", ended, err)
			}
			if left, err := kube.BatchV1().Jobs("jobs").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
				t.Errorf("%d Jobs are left, %v", len(left.Items), err)
			}
		})
	}
}

func TestWorkIsFoundAndNotBegun(t *testing.T) {
	c, kube := flashing(t, validation.OwnSuccess)
	in := powerInput(0)
	in.Find = true
	if _, err := activitytest.Call(t, c.BeginWork, in); activitytest.ErrorType(err) != api.ErrorHookFailed {
		t.Errorf("found where there is none: %v", err)
	}
	in.Find = false
	begun, err := activitytest.Call(t, c.BeginWork, in)
	if err != nil {
		t.Fatal(err)
	}
	in.Find = true
	if found, err := activitytest.Call(t, c.BeginWork, in); err != nil || found != begun || found.BootID != "boot-1" {
		t.Errorf("found %+v, begun %+v, %v", found, begun, err)
	}
	if all, err := kube.BatchV1().Jobs("jobs").List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 {
		t.Errorf("%d Jobs, %v", len(all.Items), err)
	}
}
