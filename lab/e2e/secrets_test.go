package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/api"
)

// withSecret pods have something in their specification that nobody else is to see.
func withSecret(value string) option {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: value}}
		t.Annotations = map[string]string{"example.com/token": value}
	}
}

func TestNoSecretIsInAnyHistoryLogOrError(t *testing.T) {
	const apiKey, header, ofPod, key = "canary-of-the-api-key", "canary-of-a-header", "canary-of-a-pod", "canary-of-a-private-key"
	environment := map[string]string{"TEMPORAL_API_KEY": apiKey, "TEMPORAL_TLS": "false", "TEMPORAL_GRPC_META_X_SECRET": header}
	s := prepareSite(t, "scheduler: {maxParallel: 3}\nlog: {level: debug}")
	for name, value := range environment {
		s.environment = append(s.environment, name+"="+value)
	}
	s.options.Environment = slices.Clone(s.environment)
	s.startWorker()
	account, err := clientcmd.LoadFromFile(s.options.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	canaries := map[string]string{"the API key": apiKey, "a header": header, "a pod's environment": ofPod, "a private key": key}
	for _, user := range account.AuthInfos {
		canaries["the account's token"] = user.Token
	}

	var seen bytes.Buffer
	say := func(args ...string) { fmt.Fprintf(&seen, "drydock %q\n%s\n", args, s.drydock(args...).out()) }
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01", withSecret(ofPod))
	s.deployment(ns, "api", 1, on("worker-02"), withSecret(ofPod))
	say("preflight", "worker-01", "-o", "json")
	blocked, through := s.begin("worker-01"), s.begin("worker-02")
	s.blockedBy(blocked, "DisruptionBudget")
	s.until(through, api.Ready)
	if _, err := s.end(s.begin("worker-00")); err == nil {
		t.Error("a node that does not exist was maintained")
	}
	for _, args := range [][]string{
		{"status", "worker-01"}, {"status", "worker-01", "-o", "json"}, {"list", "--all", "-o", "json"}, {"limits"}, {"doctor"},
		{"failed", "worker-02", "--reason", "it broke"}, {"retry", "worker-02"}, {"done", "worker-02", "--wait"}, {"cancel", "worker-01", "--wait"},
		{"list", "--address", "127.0.0.1:1"}, {"list", "--namespace", "nobodys"},
	} {
		say(args...)
	}
	for name, value := range map[string]string{"TEMPORAL_TLS_CLIENT_KEY_DATA": key, "TEMPORAL_TLS_CLIENT_CERT_DATA": key, "TEMPORAL_TLS": "true"} {
		s.environment = append(s.environment, name+"="+value)
	}
	say("list")

	places := s.written(4)
	places["what the command line says"] = seen.Bytes()
	s.mustNotLeak(places, canaries)
	// The search finds what is there.
	if !bytes.Contains(places["the history of "+blocked.GetID()], []byte("web")) || !bytes.Contains(seen.Bytes(), []byte("TLS to Temporal")) {
		t.Errorf("the search is blind: %s", seen.String())
	}
}

// written is what the site's workers have logged, and every history of its workflows, of which there are some at least.
func (s *site) written(atLeast int) map[string][]byte {
	s.Helper()
	places := map[string][]byte{}
	logs, err := filepath.Glob(filepath.Join(s.options.Dir, "*.log"))
	if err != nil || len(logs) == 0 {
		s.Fatalf("no log of the worker: %v", err)
	}
	for _, file := range logs {
		if places[file], err = os.ReadFile(file); err != nil {
			s.Fatal(err)
		}
	}
	var page *workflowservice.ListWorkflowExecutionsResponse
	s.eventually("the workflows are listed", func() (err error) {
		page, err = s.temporal.ListWorkflow(s.ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("TaskQueue = '%s'", api.TaskQueue(s.cluster, "drydock")),
		})
		if err == nil && len(page.Executions) < atLeast {
			err = fmt.Errorf("%d of %d", len(page.Executions), atLeast)
		}
		return err
	})
	for _, info := range page.Executions {
		id := info.GetExecution().GetWorkflowId()
		history := s.temporal.GetWorkflowHistory(s.ctx, id, info.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				s.Fatal(err)
			}
			raw, err := proto.Marshal(event)
			if err != nil {
				s.Fatal(err)
			}
			places["the history of "+id] = append(places["the history of "+id], raw...)
		}
	}
	return places
}

func (s *site) mustNotLeak(places map[string][]byte, canaries map[string]string) {
	s.Helper()
	for place, content := range places {
		for what, canary := range canaries {
			if canary == "" || bytes.Contains(content, []byte(canary)) {
				s.Errorf("%s is in %s", what, place)
			}
		}
	}
}
