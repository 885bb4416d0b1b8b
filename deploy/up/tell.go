package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// elsewhere are variables that lead to another Temporal or another Drydock.
var elsewhere = []string{
	"TEMPORAL_PROFILE", "TEMPORAL_API_KEY", "TEMPORAL_TLS", "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH",
	"TEMPORAL_TLS_CLIENT_CERT_DATA", "TEMPORAL_TLS_CLIENT_KEY_DATA", "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
	"TEMPORAL_TLS_SERVER_CA_CERT_DATA", "TEMPORAL_TLS_SERVER_NAME", "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", "TEMPORAL_CLIENT_AUTHORITY", "TEMPORAL_CODEC_ENDPOINT", "TEMPORAL_CODEC_AUTH",
	"DRYDOCK_CLUSTER", "DRYDOCK_TASK_QUEUE", "DRYDOCK_TEMPORAL_API_KEY_FILE", "DRYDOCK_CODEC_KEYS_FILE",
}

// tell says where everything is, and what to do first.
func (s *site) tell(r state, account string) error {
	// The commands below name a context, which another shell has to find too.
	kubeconfig := strings.Join(s.cluster.files, string(filepath.ListSeparator))
	exports := fmt.Sprintf("unset %s\nexport TEMPORAL_ADDRESS=%s TEMPORAL_NAMESPACE=default TEMPORAL_CONFIG_FILE=%s DRYDOCK_CONFIG=%s KUBECONFIG=%s\n",
		strings.Join(elsewhere, " "), s.temporal.Address, quoted(s.folder.path(profileFile)), quoted(s.folder.path(configFile)), quoted(kubeconfig))
	if err := s.folder.write(environment, []byte(exports)); err != nil {
		return err
	}
	node := "NODE"
	if len(s.cluster.nodes) > 0 {
		node = s.cluster.nodes[0]
	}
	drydock := ".bin/drydock --context " + quoted(s.cluster.context)
	s.say(`
Drydock is up.
  cluster        %[1]s
  Temporal UI    http://%[2]s
  Temporal       %[3]s, namespace default
  worker         http://%[4]s/metrics, as %[5]s%[11]s
  kept in        %[6]s:
                 drydock.yaml (the worker's configuration: make up again once it is changed), temporal.db,
                 audit.jsonl (a record of each maintenance), and the logs

A first maintenance:
  . %[7]s
  %[8]s preflight %[9]s
  %[8]s start %[9]s --reason "a first look" --wait
  %[8]s status %[9]s
  %[8]s done %[9]s --wait
%[12]s
make down%[10]s stops it, and make up%[10]s goes on from there. Temporal is one process here, for one machine: docs/tasks/install.md has the rest.`,
		s.cluster, loopback(r.Ports.UI), s.temporal.Address, loopback(r.Ports.Worker),
		cmp.Or(account, yourself), string(s.folder), quoted(s.folder.path(environment)), drydock, node, s.again,
		s.ofBridge(r), s.firstObject(r, node))
	return nil
}

// ofBridge says where the bridge is, if there is one.
func (s *site) ofBridge(r state) string {
	if !r.Bridge {
		return ""
	}
	return fmt.Sprintf("\n  bridge         http://%s/metrics, as %s", loopback(r.Ports.Bridge), cmp.Or(r.BridgeAccount, yourself))
}

// firstObject is a first maintenance by an object, if there is a bridge.
func (s *site) firstObject(r state, node string) string {
	if !r.Bridge {
		return ""
	}
	kubectl := "kubectl --context " + quoted(s.cluster.context)
	object := fmt.Sprintf("{apiVersion: drydock.dev/v1alpha1, kind: NodeMaintenance, metadata: {name: first}, spec: {node: %s, reason: a first look}}", node)
	return fmt.Sprintf(`
Or by an object of Kubernetes (docs/tasks/kubectl.md):
  echo '%[1]s' | %[2]s apply -f -
  %[2]s wait --for=condition=Ready nodemaintenance/first --timeout=1h
  %[2]s delete nodemaintenance/first
`, object, kubectl)
}

// yourself is whom a process acts as that has no account of its own.
const yourself = "you, with the credentials of that context"

// quoted is a word for a shell.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
