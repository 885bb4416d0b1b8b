package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodes(t *testing.T) {
	nodes := nodeSpec{
		workers: 4, controlPlanes: 1, prefix: "worker-", zones: 3, images: 2,
		labels: map[string]string{"pool": "gpu"},
	}.build()
	var names, zones, addresses []string
	for _, node := range nodes {
		names = append(names, node.Name)
		zones = append(zones, node.Labels[corev1.LabelTopologyZone])
		addresses = append(addresses, node.Status.Addresses[0].Address)
	}
	for _, check := range []struct{ got, want []string }{
		{names, []string{"worker-01", "worker-02", "worker-03", "worker-04", "control-plane-01"}},
		{zones, []string{"zone-a", "zone-b", "zone-c", "zone-a", "zone-a"}},
		{addresses, []string{"172.16.0.1", "172.16.0.2", "172.16.0.3", "172.16.0.4", "172.31.0.1"}},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("got %v, want %v", check.got, check.want)
		}
	}
	worker, controlPlane := nodes[0], nodes[4]
	if worker.Labels["pool"] != "gpu" || len(worker.Spec.Taints) != 0 || len(worker.Status.Images) != 2 {
		t.Errorf("unexpected worker %+v", worker)
	}
	if _, ok := controlPlane.Labels[controlPlaneRole]; !ok || len(controlPlane.Spec.Taints) != 1 || controlPlane.Labels["pool"] != "" {
		t.Errorf("unexpected control plane node %+v", controlPlane)
	}
}

func TestOptionsReportAllThatIsWrong(t *testing.T) {
	o := upOptions{
		dir: "d", nodes: nodeSpec{workers: -1, prefix: "Worker_", zones: 27},
		nodeLabels: []string{"pool", "a b=c"}, podsPerNode: 111, port: 70000,
	}
	err := o.complete()
	if err == nil {
		t.Fatal("bad options were accepted")
	}
	for _, part := range []string{"negative", "--node-prefix", "--zones", `"pool"`, `"a b=c"`, "--pods-per-node", "--port"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not mention %s: %v", part, err)
		}
	}
}

func TestLogTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.log")
	if got := logTail(file, 2); !strings.Contains(got, "no such file") {
		t.Errorf("tail of a missing log: %q", got)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("filler\n", 20000)+"one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := logTail(file, 2), "  two\n  three"; got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
}
