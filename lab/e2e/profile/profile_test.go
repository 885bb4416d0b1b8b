package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/profile/state"
)

// Annotations of Flatcar's update operator.
const (
	rebootNeeded     = "flatcar-linux-update.v1.flatcar-linux.net/reboot-needed"
	rebootOK         = "flatcar-linux-update.v1.flatcar-linux.net/reboot-ok"
	rebootInProgress = "flatcar-linux-update.v1.flatcar-linux.net/reboot-in-progress"
)

// changedState is the reason of the Event that tells of a transition.
const changedState = "ChangedMaintenanceState"

// agent stands in for the agent of Flatcar's update operator on a node: it has an update, waits to be told that it may reboot, reboots,
// and says that it has no update any more.
func (m *machines) agent(node string, pods func() int) error {
	set := func(needed, progress bool) {
		m.PatchNode(node, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%t",%q:"%t"}}}`, rebootNeeded, needed, rebootInProgress, progress))
	}
	ok := func(is bool) func() error {
		return func() error {
			if has := m.Node(node).Annotations[rebootOK] == "true"; has != is {
				return fmt.Errorf("%s is %t", rebootOK, has)
			}
			return nil
		}
	}
	set(true, false)
	m.Eventually(node+" may reboot", ok(true))
	var err error
	if left := pods(); left > 0 {
		err = fmt.Errorf("%s was to reboot with %d pods on it", node, left)
	}
	if !m.Node(node).Spec.Unschedulable {
		err = errors.Join(err, fmt.Errorf("%s was to reboot, and takes pods", node))
	}
	set(true, true)
	m.Ready(node, false)
	m.Ready(node, true)
	set(false, false)
	m.Eventually(node+" was told that it is known", ok(false))
	return err
}

func TestAFlatcarProfileUpdatesNodesOneAfterTheOther(t *testing.T) {
	m := newMachines(t, readText(t, "../testdata/profiles/flatcar.yaml"), "")
	m.granted()
	ns := m.Namespace()
	nodes := []string{"worker-01", "worker-02", "worker-03"}
	for _, node := range nodes {
		m.Deployment(ns, "web-"+node, 1, site.On(node))
	}
	m.DaemonSet(ns, "agent")
	for _, node := range nodes {
		m.label(node, "flatcar")
		m.comes(node, "flatcar", state.Operational)
	}
	d := m.follow()
	var agents sync.WaitGroup
	for _, node := range nodes {
		agents.Go(func() {
			if err := m.agent(node, func() int { return m.webOn(ns, node) }); err != nil {
				t.Error(err)
			}
		})
	}
	agents.Wait()
	for _, node := range nodes {
		m.cycled(d, node, 1)
		m.MustBeFree(node)
		m.asSpecified(m.Node(node), "flatcar")
		m.Eventually("three events tell of "+node, func() error {
			if events := m.NodeEvents(node, changedState); len(events) != 3 {
				return fmt.Errorf("%d: %v", len(events), events)
			}
			return nil
		})
	}
	if _, most, err := d.told(nodes[0]); most != 1 || err != nil {
		t.Errorf("%d nodes were in maintenance at one instant, want 1; %v", most, err)
	}
	if labels, _, _ := d.told("worker-04"); !slices.Equal(labels, []string{"operational"}) {
		t.Errorf("a node without a profile has shown %v", labels)
	}
	m.Exits(m.Drydock("profile", "list", "flatcar"), 0, "worker-01", "worker-03", "operational")
}

// webOn is how many pods are on a node that DaemonSets do not have.
func (m *machines) webOn(ns, node string) int {
	web := 0
	for _, pod := range m.PodsOn(ns, node) {
		if strings.HasPrefix(pod.Labels["app"], "web-") {
			web++
		}
	}
	return web
}

// asSpecified checks label and annotation of a node that is operational.
func (m *machines) asSpecified(n *corev1.Node, profile string) {
	m.Helper()
	theirs := decodeTheirs(m.T, n.Annotations[state.DataAnnotation])
	is, there := theirs.Profiles[profile]
	if !there || len(theirs.Profiles) != 1 || is.Current != "operational" || is.Previous != "operational" && is.Previous != "in-maintenance" || is.Transition.IsZero() {
		m.Errorf("%s: the annotation is %s", n.Name, n.Annotations[state.DataAnnotation])
	}
	if label := n.Labels[state.StateLabel]; label != "operational" {
		m.Errorf("%s: the label is %q", n.Name, label)
	}
}

// hook is a Slack that takes messages.
func (m *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var said struct{ Text, Channel string }
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, said.Channel+" "+said.Text)
	_, _ = io.WriteString(w, "ok") // whoever asks sees if it does not come
}

type hook struct {
	mu   sync.Mutex
	said []string
}

func (m *hook) heard() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.said)
}

// TestTheExamplesOfMaintenanceControllersDocumentDoWhatItSays has a node patched by the profile of the document: approved by a label,
// cordoned in the transition, drained on entering the state, and told of as long as it waits.
func TestTheExamplesOfMaintenanceControllersDocumentDoWhatItSays(t *testing.T) {
	t.Parallel()
	slack := &hook{}
	server := httptest.NewServer(slack)
	t.Cleanup(server.Close)
	m := prepareMachines(t, site.Shared.Lanes.Take(t), readText(t, "../testdata/profiles/document.yaml"), "")
	m.Options.Environment = append(m.Options.Environment, "HOOK="+server.URL)
	m.StartWorker()
	const node, other = "worker-01", "worker-02"
	ns := m.Namespace()
	m.Deployment(ns, "web", 1, site.On(node))
	d := m.follow()
	m.label(node, "os-patching", "k8s-upgrade")
	m.label(other, "os-patching")
	m.comes(node, "os-patching", state.Operational)
	if _, there := m.data(node).Profiles["k8s-upgrade"]; there {
		t.Error("a profile that the file does not have has a state")
	}

	for _, name := range []string{node, other} {
		m.annotate(name, "os-patching/needed", "true")
		m.comes(name, "os-patching", state.Required)
	}
	m.Eventually("it is told of", func() error {
		want := []string{
			"#maintenance Node worker-01 is maintenance-required, by os-patching", "#maintenance Node worker-02 is maintenance-required, by os-patching",
		}
		said := slack.heard()
		slices.Sort(said)
		if !slices.Equal(said, want) {
			return fmt.Errorf("%q", said)
		}
		return nil
	})
	m.Exits(m.Drydock("profile", "explain", node), 0, "os-patching", "maintenance-required", "check_approval", "maintenance-approved")

	// The webhook of the other stays as it is: there is one place.
	for _, name := range []string{node, other} {
		m.PatchNode(name, `{"metadata":{"labels":{"maintenance-approved":"true"}}}`)
	}
	m.comes(node, "os-patching", state.Maintenance)
	m.Eventually("it is drained, and told so", func() error {
		n := m.Node(node)
		if n.Annotations["os-patching/reboot-ok"] != "true" || !n.Spec.Unschedulable {
			return errors.New("not yet")
		}
		return nil
	})
	if left := m.PodsOn(ns, node); len(left) > 0 {
		t.Errorf("it was told to reboot with %d pods", len(left))
	}
	if _, approved := m.Node(node).Labels["maintenance-approved"]; approved {
		t.Error("the approval stayed")
	}
	m.Exits(m.Drydock("profile", "explain", other), 0, "nodes_in_maintenance")
	if is := m.data(other).Profiles["os-patching"].Current; is != state.Required {
		t.Errorf("the other is %s", is)
	}
	m.annotate(node, "os-patching/needed", "")
	m.comes(node, "os-patching", state.Operational)
	m.comes(other, "os-patching", state.Maintenance)
	m.annotate(other, "os-patching/needed", "")
	m.cycled(d, other, 1)
	m.cycled(d, node, 1)
	for _, name := range []string{node, other} {
		m.MustBeFree(name)
	}
	if _, most, err := d.told(node); most != 1 || err != nil {
		t.Errorf("%d nodes were in maintenance at one instant; %v", most, err)
	}
}
