package trust

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// withSecret pods have something in their specification that nobody else is to see.
func withSecret(value string) site.Option {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: value}}
		t.Annotations = map[string]string{"example.com/token": value}
	}
}

func TestNoSecretIsInAnyHistoryLogOrError(t *testing.T) {
	const apiKey, header, ofPod, key = "canary-of-the-api-key", "canary-of-a-header", "canary-of-a-pod", "canary-of-a-private-key"
	environment := map[string]string{"TEMPORAL_API_KEY": apiKey, "TEMPORAL_TLS": "false", "TEMPORAL_GRPC_META_X_SECRET": header}
	s := site.Prepare(t, "scheduler: {maxParallel: 3}\nlog: {level: debug}")
	for name, value := range environment {
		s.Environment = append(s.Environment, name+"="+value)
	}
	s.Options.Environment = slices.Clone(s.Environment)
	s.StartWorker()
	account, err := clientcmd.LoadFromFile(s.Options.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	canaries := map[string]string{"the API key": apiKey, "a header": header, "a pod's environment": ofPod, "a private key": key}
	for _, user := range account.AuthInfos {
		canaries["the account's token"] = user.Token
	}

	var seen bytes.Buffer
	say := func(args ...string) { fmt.Fprintf(&seen, "drydock %q\n%s\n", args, s.Drydock(args...).Out()) }
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01", withSecret(ofPod))
	s.Deployment(ns, "api", 1, site.On("worker-02"), withSecret(ofPod))
	say("preflight", "worker-01", "-o", "json")
	blocked, through := s.Begin("worker-01"), s.Begin("worker-02")
	s.BlockedBy(blocked, "DisruptionBudget")
	s.Until(through, api.Ready)
	if _, err := s.End(s.Begin("worker-00")); err == nil {
		t.Error("a node that does not exist was maintained")
	}
	for _, args := range [][]string{
		{"status", "worker-01"}, {"status", "worker-01", "-o", "json"}, {"list", "--all", "-o", "json"}, {"limits"}, {"doctor"},
		{"fail", "worker-02", "--comment", "it broke"}, {"retry", "worker-02"}, {"done", "worker-02", "--wait"}, {"cancel", "worker-01", "--wait"},
		{"list", "--address", "127.0.0.1:1"}, {"list", "--namespace", "nobodys"},
	} {
		say(args...)
	}
	for name, value := range map[string]string{"TEMPORAL_TLS_CLIENT_KEY_DATA": key, "TEMPORAL_TLS_CLIENT_CERT_DATA": key, "TEMPORAL_TLS": "true"} {
		s.Environment = append(s.Environment, name+"="+value)
	}
	say("list")

	places := s.Written(4)
	places["what the command line says"] = seen.Bytes()
	s.MustNotLeak(places, canaries)
	// The search finds what is there.
	if !bytes.Contains(places["the history of "+blocked.GetID()], []byte("web")) || !bytes.Contains(seen.Bytes(), []byte("TLS to Temporal")) {
		t.Errorf("the search is blind: %s", seen.String())
	}
}
