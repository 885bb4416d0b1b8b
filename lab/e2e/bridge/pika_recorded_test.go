package bridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofPIKA is what the objects of PIKA showed. It reads its period, which is the one of the test, from /etc/config.
var ofPIKA = recording{"PIKA", os.Getenv("DRYDOCK_PIKA"), "testdata/pika-8a1803e.json"}

// notified adds what a version of an object shows.
func (s strands) notified(n notifyMaintenance) {
	s.add("status", n.Status.MaintenanceStatus)
	s.add("transitions", strings.Join(n.states(), ", "))
	for _, c := range n.Status.Conditions {
		s.add(c.Type, string(c.Status)+" "+c.Reason)
	}
	s.add("finalizer", fmt.Sprint(slices.Contains(n.Metadata.Finalizers, "ngn2.nvidia.com/finalNotice")))
	_, terminated := n.Metadata.Annotations["maintenance.ngn2.nvidia.com/terminated"]
	s.add("terminated", fmt.Sprint(terminated))
	s.add("labels", strings.Join(slices.Sorted(maps.Keys(n.Metadata.Labels)), ", "))
	s.add("expires", fmt.Sprint(n.Status.SLAExpires != nil))
}

// notifyCase is what clients do with an object until it is deleted. Undecided: the node of such an object waits for a person here.
type notifyCase struct {
	name, node string
	does       func(b *bridged, name string)
	undecided  bool
}

// drained has the node of an object that was started be empty.
func (b *bridged) drained(name string) {
	b.Helper()
	b.notifyIs(name, "MaintenanceStarted")
	b.says(name, "readyForMaintenance", "true")
	b.notifyIs(name, "ObjectsDrained")
}

var notifyCases = []notifyCase{
	{name: "plain", node: "worker-01", does: func(b *bridged, name string) {
		b.drained(name)
		b.says(name, "maintenanceClient", "inprogress")
		b.untilNotify(name, "shows that the work goes on", func(n notifyMaintenance) bool { return n.condition("maintenanceClient") == "inprogress" })
		b.says(name, "maintenanceClient", "complete")
		b.notifyIs(name, "Validating")
		b.says(name, "validationClient", "validated")
		b.untilNotify(name, "is validated", func(n notifyMaintenance) bool { return n.condition("validationClient") == "validated" })
	}},
	{name: "denied", node: "worker-02", does: func(b *bridged, name string) {
		b.notifyIs(name, "MaintenanceStarted")
		b.says(name, "readyForMaintenance", "false")
		b.says(name, "readyForMaintenance", "true")
		b.notifyIs(name, "ObjectsDrained")
		b.says(name, "maintenanceClient", "complete")
		b.notifyIs(name, "Validating")
	}},
	{name: "cancelled", node: "worker-03", does: func(b *bridged, name string) { b.notifyIs(name, "MaintenanceStarted") }},
	{name: "incomplete", node: "worker-04", undecided: true, does: func(b *bridged, name string) {
		b.drained(name)
		b.says(name, "maintenanceClient", "incomplete")
		b.notifyIs(name, "MaintenanceIncomplete")
	}},
	{name: "not-valid", node: "worker-05", undecided: true, does: func(b *bridged, name string) {
		b.drained(name)
		b.says(name, "maintenanceClient", "complete")
		b.notifyIs(name, "Validating")
		b.says(name, "validationClient", "failed")
		b.notifyIs(name, "MaintenanceIncomplete")
	}},
	{name: "expires", node: "worker-06", does: func(b *bridged, name string) {
		b.notifyIs(name, "SLAExpired")
		b.says(name, "readyForMaintenance", "true")
		b.notifyIs(name, "ObjectsDrained")
	}},
}

// recordedSLA is the period of all cases: those that do not wait for its end are through before.
const recordedSLA = "20s"

// PIKA's clients see of the bridge what they see of PIKA.
func TestNotifyMaintenancesShowWhatPIKAShows(t *testing.T) {
	b := preparePIKA(t, recordedSLA)
	var mu sync.Mutex
	seen := map[string]strands{}
	b.watch(func(kind string, version []byte) {
		var n notifyMaintenance
		mu.Lock()
		defer mu.Unlock()
		if json.Unmarshal(version, &n) != nil || n.Metadata.Name == "" {
			return
		}
		if seen[n.Metadata.Name] == nil {
			seen[n.Metadata.Name] = strands{}
		}
		seen[n.Metadata.Name].notified(n)
		if kind == "DELETED" {
			seen[n.Metadata.Name].add("status", "gone")
		}
	}, notifies)
	if ofPIKA.program != "" {
		b.servePIKA()
	} else {
		b.startBridge()
		b.untilTheEnd()
	}
	for _, c := range notifyCases {
		b.notify(c.name, c.node)
		if ofPIKA.program != "" {
			b.notifyIs(c.name, "MaintenanceScheduled")
			b.PatchNode(c.node, `{"spec":{"unschedulable":true},"metadata":{"labels":{"maintenance/id-`+c.name+`":""}}}`)
		}
		c.does(b, c.name)
		b.notifyDelete(c.name)
		switch {
		case ofPIKA.program != "":
			b.untilNotify(c.name, "is terminated", func(n notifyMaintenance) bool {
				_, is := n.Metadata.Annotations["maintenance.ngn2.nvidia.com/terminated"]
				return is
			})
			b.PatchNode(c.node, `{"spec":{"unschedulable":null}}`)
		case c.undecided:
			b.MustDrydock("cancel", c.node, "--requestor", "id-"+c.name, "--release", "--yes")
		}
		b.notifyGone(c.name)
	}
	mu.Lock()
	defer mu.Unlock()
	ofPIKA.holds(b, seen)
}

// servePIKA has PIKA itself serve the objects. The secret of its webhook's certificate has to be there before.
func (b *bridged) servePIKA() {
	b.Helper()
	if err := os.MkdirAll("/etc/config", 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile("/etc/config/notifyMaintenanceConfig.yaml", []byte("slaPeriod: "+recordedSLA+"\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pikaNamespace, Name: "pika-server-cert"}}
	if _, err := b.Kube.CoreV1().Secrets(pikaNamespace).Create(b.Ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
	ofPIKA.start(b, []string{"NAMESPACE=" + pikaNamespace}, "--cert-dir", b.TempDir())
}
