package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/rules/profile/state"
)

// machines is a site whose worker has profiles.
type machines struct {
	*site.Site
	file string
}

// newMachines starts a worker with a file of profiles, on a lane that has nothing of it any more when the test ends.
func newMachines(t *testing.T, text, config string) *machines {
	t.Helper()
	t.Parallel()
	m := prepareMachines(t, site.Shared.Lanes.Take(t), text, config)
	m.StartWorker()
	return m
}

// prepareMachines makes a site of any cluster, and starts no worker.
func prepareMachines(t *testing.T, on *site.Lane, text, config string) *machines {
	t.Helper()
	m := &machines{file: filepath.Join(t.TempDir(), "maintenance.yaml")}
	// After the worker was killed, and before another test takes the lane.
	t.Cleanup(m.strip)
	m.write(t, text)
	m.Site = site.PrepareOf(t, on, site.Shared.Temporal, fmt.Sprintf("profiles: {file: %q}\n%s", m.file, config))
	return m
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write puts another file in the place of the one before, as Kubernetes does with what is mounted: at once.
func (m *machines) write(t *testing.T, text string) {
	t.Helper()
	next := m.file + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o644), os.Rename(next, m.file)); err != nil {
		t.Fatal(err)
	}
}

// strip takes off the nodes what profiles have put on them.
func (m *machines) strip() {
	if m.Site == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m.Ctx = ctx // the test's is over
	for _, n := range m.Nodes() {
		labels, annotations := []string{}, []string{}
		for key := range n.Labels {
			if isOfProfiles(key) {
				labels = append(labels, fmt.Sprintf("%q:null", key))
			}
		}
		for key := range n.Annotations {
			if isOfProfiles(key) {
				annotations = append(annotations, fmt.Sprintf("%q:null", key))
			}
		}
		if len(labels)+len(annotations) > 0 {
			m.PatchNode(n.Name, fmt.Sprintf(`{"metadata":{"labels":{%s},"annotations":{%s}}}`, strings.Join(labels, ","), strings.Join(annotations, ",")))
		}
	}
}

func isOfProfiles(key string) bool {
	return slices.ContainsFunc([]string{"cloud.sap/", "flatcar-linux-update.v1.flatcar-linux.net/", "os-patching/", "maintenance-approved"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// granted gives the worker's account what profiles need besides, until the test ends.
func (m *machines) granted() {
	m.Helper()
	objects, err := site.ObjectsOf("../../../deploy/kubernetes/rbac-profiles.yaml")
	if err != nil {
		m.Fatal(err)
	}
	for _, o := range objects {
		if err := site.CreateRole(m.Ctx, m.Kube, o); err != nil {
			m.Fatal(err)
		}
	}
	m.Cleanup(func() { // before the lane is another test's
		roles := m.Kube.RbacV1()
		if err := errors.Join(
			roles.ClusterRoleBindings().Delete(m.Ctx, "drydock-worker-profiles", metav1.DeleteOptions{}),
			roles.ClusterRoles().Delete(m.Ctx, "drydock-worker-profiles", metav1.DeleteOptions{}),
		); err != nil && !apierrors.IsNotFound(err) {
			m.Error(err)
		}
	})
}

// label gives a node profiles; none takes the label away.
func (m *machines) label(node string, profiles ...string) {
	m.Helper()
	value := "null"
	if len(profiles) > 0 {
		value = fmt.Sprintf("%q", strings.Join(profiles, "--"))
	}
	m.PatchNode(node, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, state.ProfileLabel, value))
}

// annotate sets an annotation of a node, or takes it away where the value is empty.
func (m *machines) annotate(node, key, value string) {
	m.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	m.PatchNode(node, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text))
}

// data is what a node's annotation says.
func (m *machines) data(node string) state.Data {
	m.Helper()
	data, err := state.Read(m.Node(node).Annotations[state.DataAnnotation])
	if err != nil {
		m.Fatal(err)
	}
	return data
}

// comes waits for a profile of a node to come into a state.
func (m *machines) comes(node, profile string, to state.State) state.Profile {
	m.Helper()
	var is state.Profile
	m.Eventually(fmt.Sprintf("profile %s of %s is %s", profile, node, to), func() error {
		n := m.Node(node)
		data, err := state.Read(n.Annotations[state.DataAnnotation])
		if err != nil {
			return err
		}
		if is = data.Profiles[profile]; is.Current != to {
			return fmt.Errorf("it is %q; the annotation is %s, the label %q", is.Current, n.Annotations[state.DataAnnotation], n.Labels[state.StateLabel])
		}
		return nil
	})
	return is
}

// profiles asks the workflow what is under way.
func (m *machines) profiles() (api.ProfilesState, error) {
	var s api.ProfilesState
	value, err := m.Temporal.QueryWorkflow(m.Ctx, api.ProfilesID(m.Cluster), "", api.QueryState)
	if err != nil {
		return s, err
	}
	return s, value.Get(&s)
}

// rests waits until nothing is under way.
func (m *machines) rests() {
	m.Helper()
	m.Eventually("no transition is under way", func() error {
		running := slices.DeleteFunc(m.Running(), func(id string) bool { return !strings.HasPrefix(id, api.ProfileTransitionIDPrefix(m.Cluster)) })
		if len(running) > 0 {
			return errors.New(strings.Join(running, ", "))
		}
		return nil
	})
}

// diary follows nodes: which states each has shown, and which are in maintenance.
type diary struct {
	mu     sync.Mutex
	in     *witness.Tally
	labels map[string][]string
	err    error
}

// follow begins a diary.
func (m *machines) follow() *diary {
	m.Helper()
	d := &diary{in: witness.NewTally(), labels: map[string][]string{}}
	m.FollowNodes(d.see, d.broke)
	return d
}

func (d *diary) broke(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// see notes a node. It is in maintenance where the label or the annotation says so of any profile.
func (d *diary) see(_ watch.EventType, n *corev1.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	label := n.Labels[state.StateLabel]
	if before := d.labels[n.Name]; label != "" && (len(before) == 0 || before[len(before)-1] != label) {
		d.labels[n.Name] = append(before, label)
	}
	data, err := state.Read(n.Annotations[state.DataAnnotation])
	if err != nil {
		d.err = errors.Join(d.err, fmt.Errorf("%s: %w", n.Name, err))
	}
	in := label == string(state.Maintenance)
	inside := 0
	for _, p := range data.Profiles {
		if p.Current == state.Maintenance {
			inside++
		}
	}
	if inside > 1 {
		d.err = errors.Join(d.err, fmt.Errorf("%s is in maintenance by %d profiles", n.Name, inside))
	}
	d.in.Note(n.Name, in || inside > 0)
}

// told are the labels of a node so far, and the most that were in maintenance at one instant.
func (d *diary) told(node string) (labels []string, most int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.labels[node]), d.in.Most(), d.err
}

// cycled waits until a node has gone round, and checks what it has shown on the way.
func (m *machines) cycled(d *diary, node string, times int) {
	m.Helper()
	want := []string{string(state.Operational)}
	for range times {
		want = append(want, string(state.Required), string(state.Maintenance), string(state.Operational))
	}
	m.Eventually(node+" has gone round", func() error {
		labels, _, err := d.told(node)
		if err == nil && !slices.Equal(labels, want) {
			err = fmt.Errorf("it has shown %v", labels)
		}
		return err
	})
}

// nodesIn are the nodes whose label shows a state.
func (m *machines) nodesIn(s state.State) []string {
	list, err := m.Kube.CoreV1().Nodes().List(m.Ctx, metav1.ListOptions{LabelSelector: state.StateLabel + "=" + string(s)})
	if err != nil {
		return nil // the next look may see them
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}
