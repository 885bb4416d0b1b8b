package migration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/schedule"
)

// object is a NodeMaintenance of maintenance-operator.
func object(node, reason string, created time.Time) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"nodeName": node, "requestorID": "a.b"},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": created.Format(time.RFC3339)},
		}},
	}}
	o.SetNamespace("default")
	o.SetName("m-" + node)
	o.SetCreationTimestamp(metav1.NewTime(created))
	return o
}

// seen is a cluster of four nodes, some of them cordoned, with objects.
func seen(at time.Time, cordoned string, objects ...unstructured.Unstructured) Cluster {
	c := Cluster{At: at, Objects: map[schema.GroupVersionResource][]unstructured.Unstructured{nodeMaintenances: objects}}
	for i := 1; i <= 4; i++ {
		name := fmt.Sprintf("worker-%d", i)
		c.Nodes = append(c.Nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: strings.Contains(cordoned, name)},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return c
}

// differences looks at a cluster and returns what the shadow reports, one claim after the other: node, difference and reason.
func differences(t *testing.T, s *Shadow, c Cluster) string {
	t.Helper()
	all, err := s.Look(c)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, c := range all {
		text := c.Node + " " + string(c.Difference)
		if c.By > 0 {
			text += " " + c.By.String()
		}
		if c.Why != "" {
			text += " (" + c.Why + ")"
		}
		if !c.Ended.IsZero() {
			text += " ended"
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

func TestTheShadowOfASystem(t *testing.T) {
	s := NewShadow(maintenanceOperator{Given{Limits: schedule.Limits{MaxParallel: schedule.Count(1)}}})
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	for _, step := range []struct {
		about string
		c     Cluster
		want  string
	}{
		{"one is out, one waits", seen(at(0), "worker-1", object("worker-1", "Draining", at(-9)), object("worker-2", "Pending", at(-5))),
			"worker-1 before; worker-2 waits (maxParallel 1: the slot is taken (worker-1))"},
		{"nothing is new", seen(at(1), "worker-1", object("worker-1", "Ready", at(-9)), object("worker-2", "Pending", at(-5))), ""},
		{"the system takes a second one", seen(at(2), "worker-1 worker-2", object("worker-1", "Ready", at(-9)), object("worker-2", "Cordon", at(-5))),
			"worker-2 later (maxParallel 1: the slot is taken (worker-1))"},
		{"both are back, a third asks", seen(at(3), "", object("worker-3", "Pending", at(2))), "worker-1 before ended; worker-2 later (maxParallel 1: the slot is taken (worker-1)) ended; worker-3 sooner"},
		{"the third is taken late", seen(at(8), "worker-3", object("worker-3", "Scheduled", at(2))), "worker-3 earlier 5m0s"},
		{"a fourth is new and out at once, after the third", seen(at(9), "worker-4", object("worker-4", "Draining", at(9))), "worker-3 earlier 5m0s ended; worker-4 same"},
		{"it asks again under its name", seen(at(10), "", object("worker-4", "Pending", at(10))), "worker-4 same ended; worker-4 sooner"},
		{"and is withdrawn", seen(at(11), ""), "worker-4 gone ended"},
		{"a node that does not exist", seen(at(12), "", object("worker-9", "Pending", at(12))), "worker-9 waits (there is no node worker-9)"},
	} {
		if got := differences(t, s, step.c); got != step.want {
			t.Errorf("%s: %s\nwant %s", step.about, got, step.want)
		}
	}
	want := map[Difference]int{Before: 1, Later: 1, Earlier: 1, Same: 1, Gone: 1}
	if fmt.Sprint(s.Counts) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", s.Counts, want)
	}
	if waiting, sooner := s.Waiting(); waiting != 1 || sooner != 0 {
		t.Errorf("%d wait, %d of them would be taken", waiting, sooner)
	}
}

// What keeps Drydock from taking a node is what each system's settings become.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		system string
		limits schedule.Limits
		at     time.Time
		want   map[string]string
	}{
		"maintenance-operator's limits": {system: MaintenanceOperator, want: map[string]string{"worker-02 default/network-operator-worker-02": "all 2 slots are taken"}},
		"limits of one's own":           {system: MaintenanceOperator, limits: schedule.Limits{MaxUnavailable: schedule.Percent(100), MaxParallel: schedule.Count(3)}},
		"PIKA's default":                {system: PIKA, want: map[string]string{"worker-02 pika/b": "no node worker-02"}},
		"a profile's checks":            {system: SAP, want: map[string]string{"worker-02 os": "checks: one"}},
		"a health check's threshold":    {system: Medik8s, want: map[string]string{"worker-02 gpu": "2 of 4 nodes are healthy"}},
		"kured's window":                {system: Kured, want: map[string]string{"worker-02 kube-system/kured": "strategy.maxParallel 1"}},
		"a plan's pace":                 {system: UpgradeController, want: map[string]string{"worker-02 system-upgrade/os": "strategy.maxParallel 1"}},
	} {
		s, err := Of(c.system, given(t, c.limits))
		if err != nil {
			t.Fatal(err)
		}
		cluster := clusterOf(t, c.system, s)
		var asked []Claim
		for _, claim := range s.Claims(cluster) {
			if !claim.Out {
				asked = append(asked, claim)
			}
		}
		got, err := s.Refusals(cluster, asked)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", name, got)
		}
		for key, why := range c.want {
			if !strings.Contains(got[key], why) {
				t.Errorf("%s: %v, want %s: %s", name, got, key, why)
			}
		}
	}
}

// A window that is closed keeps a plan's nodes, and one that is open does not.
func TestWindowsOfTheSystemCount(t *testing.T) {
	s, err := Of(UpgradeController, Given{})
	if err != nil {
		t.Fatal(err)
	}
	c := clusterOf(t, UpgradeController, s)
	free := c.Objects[upgradePlans][0]
	unstructured.RemoveNestedField(free.Object, "status", "applying")
	asked := []Claim{{Node: "worker-02", For: "system-upgrade/os"}}
	got, err := s.Refusals(c, asked) // Saturday noon, and it opens from 1 to 5
	if why := got[asked[0].Key()]; err != nil || !strings.Contains(why, "window system-upgrade/os") {
		t.Errorf("%v, %v", got, err)
	}
	c.At = noon.Add(14 * time.Hour)
	if got, err := s.Refusals(c, asked); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// A profile that the system has just taken into maintenance is judged as the one that it was.
func TestAProfileThatWasJustTaken(t *testing.T) {
	s, err := Of(SAP, given(t, schedule.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	c := clusterOf(t, SAP, s)
	taken := Claim{Node: "worker-01", For: "os", Out: true, Asked: noon.Add(-2 * time.Hour)}
	got, err := s.Refusals(c, []Claim{taken})
	if why := got[taken.Key()]; err != nil || !strings.Contains(why, "wants") {
		t.Errorf("%v, %v", got, err)
	}
	c.Nodes[0].Labels["reboot"] = "true"
	if got, err := s.Refusals(c, []Claim{taken}); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if c.Nodes[0].Labels["cloud.sap/maintenance-state"] != "in-maintenance" {
		t.Error("the node was changed")
	}
}

func TestHoursAreWindows(t *testing.T) {
	for name, c := range map[string]struct {
		of         hours
		want, note string
		wrong      string
	}{
		"always":        {of: hours{}, want: "always"},
		"every day":     {of: hours{days: []string{"su", "mo", "tu", "we", "th", "fr", "sa"}, start: "0:00", end: "23:59:59"}, want: "always"},
		"a night":       {of: hours{days: []string{"5", "Saturday"}, start: "10pm", end: "4:00", zone: "Europe/Berlin"}, want: "[fri sat] 22:00-04:00 Europe/Berlin", note: "midnight"},
		"with seconds":  {of: hours{start: "1:00:30", end: "2:30:30"}, want: "[] 01:01-02:31 "},
		"no day":        {of: hours{days: []string{"someday"}}, wrong: "no day"},
		"no time":       {of: hours{start: "noon"}, wrong: "no time"},
		"no time zone":  {of: hours{start: "1:00", zone: "Moon"}, wrong: "timezone"},
		"a single hour": {of: hours{start: "9", end: "10"}, want: "[] 09:00-10:00 "},
	} {
		w, note, err := c.of.window()
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got := "always"
		if w != nil {
			got = fmt.Sprintf("%v %s-%s %s", w.Days, w.From, w.To, w.Timezone)
		}
		if err != nil || got != c.want || !strings.Contains(note, c.note) || note != "" && c.note == "" {
			t.Errorf("%s: %s, %q, %v", name, got, note, err)
		}
	}
}

func TestTheLocksOfKured(t *testing.T) {
	for annotation, want := range map[string]int{
		"": 0, "{": 0, "[]": 0, `{"nodeID":"a"}`: 1,
		`{"maxOwners":2,"locks":[{"nodeID":"a","created":"2026-11-28T11:00:00Z","TTL":60000000000},{"nodeID":"b","created":"2026-11-28T11:00:00Z","TTL":0}]}`: 1,
	} {
		if got := locks(annotation, noon); len(got) != want {
			t.Errorf("%s: %v", annotation, got)
		}
	}
}

// Marks of the bridge are found, and what keeps one from taking them off.
func TestTheWayBack(t *testing.T) {
	s, err := Of(MaintenanceOperator, Given{})
	if err != nil {
		t.Fatal(err)
	}
	c := clusterOf(t, MaintenanceOperator, s)
	marked := &c.Objects[nodeMaintenances][1]
	marked.SetFinalizers([]string{"other", "drydock.dev/maintenance"})
	marked.SetAnnotations(map[string]string{"drydock.dev/run": "a"})
	all, served, underWay := Back(s, c)
	if len(all) != 1 || all[0].String() != "default/network-operator-worker-02" || !all[0].HasFinalizer || !all[0].Ran || served != "" || len(underWay) != 2 {
		t.Errorf("%+v, %q, %q", all, served, underWay)
	}
	if err := unstructured.SetNestedField(c.Objects[leases][0].Object, "drydock-bridge_host_1", "spec", "holderIdentity"); err != nil {
		t.Fatal(err)
	}
	if _, served, _ = Back(s, c); !strings.Contains(served, "stop the bridge") {
		t.Errorf("%q", served)
	}
}

// BenchmarkLook is one look of the shadow at 15,000 nodes, for 1,000 of which the system has been asked.
func BenchmarkLook(b *testing.B) {
	at := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	c := Cluster{At: at, Objects: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for i := range 15_000 {
		name := fmt.Sprintf("worker-%d", i)
		c.Nodes = append(c.Nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%3)}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
		if i < 1000 {
			c.Objects[nodeMaintenances] = append(c.Objects[nodeMaintenances], object(name, "Pending", at))
		}
	}
	s := NewShadow(maintenanceOperator{Given{Limits: schedule.Limits{MaxParallel: schedule.Count(100)}}})
	for b.Loop() {
		c.At = c.At.Add(time.Second)
		if _, err := s.Look(c); err != nil {
			b.Fatal(err)
		}
	}
}
