package bridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	kep "drydock.dev/drydock/bridge/kep/objects"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/lab/e2e/site"
)

// keps are KEP-4212's objects.
var keps = kind{name: "NodeMaintenance", plural: kep.Resource}

// newKEP is a site whose bridge serves them.
func newKEP(t *testing.T) *bridged {
	t.Helper()
	b := prepare(t, "scheduler: {maxParallel: 2}")
	b.args = []string{"--kep"}
	b.install(manifests + "kep/crd.yaml")
	b.Eventually("the objects are served", func() error { return b.send(keps.plural, "get", "", nil, nil) })
	b.startBridge()
	b.untilTheEnd()
	return b
}

func (b *bridged) untilKEP(name, what string, is func(kep.Status) bool) (m kep.NodeMaintenance) {
	b.Helper()
	b.Eventually(name+" "+what, func() error {
		m = kep.NodeMaintenance{}
		err := b.send(keps.plural, "get", name, nil, &m)
		if err == nil && !is(m.Status) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	return m
}

// kepIs waits until a condition of an object is true.
func (b *bridged) kepIs(name, condition string) kep.NodeMaintenance {
	b.Helper()
	return b.untilKEP(name, "is "+condition, func(s kep.Status) bool { return meta.IsStatusConditionTrue(s.Conditions, condition) })
}

func (b *bridged) setStage(name string, stage api.Stage) {
	b.Helper()
	b.patch(keps, name, map[string]any{"spec": map[string]any{"stage": stage}})
}

// on is a node selector of nodes.
func on(nodes ...string) string {
	return "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [" + strings.Join(nodes, ", ") + "]}]}]}"
}

func stagesOf(s kep.Status) (all []api.Stage) {
	for _, stage := range s.StageStatuses {
		if stage.StartTimestamp == nil {
			return nil
		}
		all = append(all, stage.Name)
	}
	return all
}

func TestANodeMaintenanceOfTheKEP(t *testing.T) {
	b := newKEP(t)
	before := b.Imprints()
	b.askFor(keps, "firmware", "{"+on("worker-04")+", drainPlan: [{podPriority: 5000, podType: Default}], reason: firmware 7}")
	m := b.untilKEP("firmware", "is Idle", func(s kep.Status) bool {
		return slices.Equal(stagesOf(s), []api.Stage{api.StageIdle}) && meta.IsStatusConditionFalse(s.Conditions, v1alpha1.Reconciling)
	})
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.Drained); c == nil || c.Status != metav1.ConditionFalse || len(m.Status.NodeStatuses) > 0 {
		t.Errorf("in stage Idle it shows %+v", m.Status)
	}
	if b.Imprint("worker-04") != before["worker-04"] {
		t.Error("a node was touched in stage Idle")
	}

	// A selector may change, the drain plan does not, and no stage goes back.
	b.patch(keps, "firmware", map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"nodeSelectorTerms": []any{
		map[string]any{"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []string{"worker-04", "worker-05"}}}},
	}}}})
	b.setStage("firmware", api.StageDrain)
	m = b.kepIs("firmware", v1alpha1.Drained)
	if got := stagesOf(m.Status); !slices.Equal(got, []api.Stage{api.StageIdle, api.StageCordon, api.StageDrain}) || m.Status.ObservedGeneration != m.Generation {
		t.Errorf("drained, it shows %+v of generation %d", m.Status, m.Generation)
	}
	b.untilKEP("firmware", "has both nodes drained", func(s kep.Status) bool {
		return len(s.NodeStatuses) == 2 && !slices.ContainsFunc(s.NodeStatuses, func(n api.KEPNode) bool {
			return len(n.DrainTargets) != 3 || n.DrainMessage != "Drained" || n.PodsPendingEvacuation+n.PodsEvacuating > 0
		})
	})
	for says, spec := range map[string]map[string]any{
		"stage goes from Idle over Cordon": {"stage": "Cordon"},
		"drainPlan does not change":        {"drainPlan": []any{}},
	} {
		err := b.patchAs(keps, b.Kube, "firmware", map[string]any{"spec": spec}, "dry")
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", spec, err, says)
		}
	}

	b.setStage("firmware", api.StageComplete)
	m = b.kepIs("firmware", v1alpha1.Succeeded)
	if got := stagesOf(m.Status); m.Status.Phase != api.PlanCompleted || !slices.Contains(got, api.StageComplete) {
		t.Errorf("at its end it shows %+v", m.Status)
	}
	for _, node := range []string{"worker-04", "worker-05"} {
		b.Back(node, before[node])
	}
	b.remove(keps, "firmware")
	b.wasRemoved(keps, "firmware")
}

// The KEP has an object that is deleted go to stage Complete.
func TestADeletedNodeMaintenanceOfTheKEPGivesItsNodesBack(t *testing.T) {
	b := newKEP(t)
	before := b.Imprints()
	ns := b.Namespace()
	b.Guarded(ns, "guarded", "worker-02")
	b.askFor(keps, "rack", "{"+on("worker-02", "worker-03")+", stage: Drain}")
	m := b.untilKEP("rack", "waits for a budget", func(s kep.Status) bool {
		return slices.ContainsFunc(s.NodeStatuses, func(n api.KEPNode) bool {
			return n.NodeRef.Name == "worker-02" && len(n.DrainTargets) > 0 && n.PodsPendingEvacuation+n.PodsEvacuating == 1 && n.DrainMessage != ""
		})
	})
	if meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.Drained) {
		t.Errorf("it is drained: %+v", m.Status)
	}
	b.remove(keps, "rack")
	b.wasRemoved(keps, "rack")
	for _, node := range []string{"worker-02", "worker-03"} {
		b.Back(node, before[node])
	}

	// Nothing is begun for an object that asks for the end, or for no node.
	b.askFor(keps, "over", "{"+on("worker-02")+", stage: Complete}")
	b.askFor(keps, "empty", "{nodeSelector: {nodeSelectorTerms: [{}]}}")
	for name, says := range map[string]string{"over": "nothing was begun", "empty": "spec.nodeSelector"} {
		m := b.kepIs(name, v1alpha1.Stalled)
		if !strings.Contains(m.Status.Message, says) || m.Status.WorkflowID != "" || len(m.Finalizers) > 0 {
			t.Errorf("%s shows %+v, want %q", name, m.Status, says)
		}
		b.remove(keps, name)
		b.wasRemoved(keps, name)
	}
}

func TestWhoMayAskByTheKEPsObjects(t *testing.T) {
	b := newKEP(t)
	b.install(manifests + "kep/admission.yaml")
	write := site.Rule(kep.GroupVersion.Group, "nodemaintenances", "create", "get", "patch", "delete")
	b.may("nina", write)
	b.may("theo", write, site.Rule("", "nodes", "maintain"))
	b.may("rita", write, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"maintain"}, ResourceNames: []string{"worker-04", "worker-05"}})
	nina, theo, rita := b.as("nina"), b.as("theo"), b.as("rita")
	nodes := func(names ...string) map[string]any {
		var terms []any
		for _, name := range names {
			terms = append(terms, map[string]any{"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []string{name}}}})
		}
		return map[string]any{"nodeSelector": map[string]any{"nodeSelectorTerms": terms}}
	}
	named := nodes("worker-05")
	all := map[string]any{"nodeSelector": map[string]any{"nodeSelectorTerms": []any{
		map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/hostname", "operator": "Exists"}}},
	}}}
	const refused = "nina may not maintain nodes worker-05"
	create := func(spec map[string]any) error { _, _, err := b.createOf(keps, rita, "ritas", spec, "dry"); return err }
	b.Eventually("the policies are in force", func() error {
		_, _, ninas := b.createOf(keps, nina, "tried", named, "dry")
		_, none, theos := b.createOf(keps, theo, "tried", named, "dry")
		_, warned, err := b.createOf(keps, theo, "tried", all, "dry")
		if err = errors.Join(forbidden(ninas, refused), theos, err); err == nil && (none != "" || !strings.Contains(warned, "takes in all nodes")) {
			err = fmt.Errorf("warnings %q and %q", none, warned)
		}
		return err
	})
	if _, _, err := b.createOf(keps, theo, "theos", named); err != nil {
		t.Fatal(err)
	}
	b.untilKEP("theos", "is shown", func(s kep.Status) bool { return s.RunID != "" })
	remove := func(as kubernetes.Interface) error {
		version, plural := versionOf(keps.plural)
		return as.CoreV1().RESTClient().Delete().AbsPath("/apis", version, plural, "theos").
			Body(&metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}).Do(b.Ctx).Error()
	}
	for _, c := range []struct {
		who  string
		says string
		try  func() error
	}{
		{"nina sets a stage", refused, func() error {
			return b.patchAs(keps, nina, "theos", map[string]any{"spec": map[string]any{"stage": "Cordon"}}, "dry")
		}},
		{"nina deletes it", refused, func() error { return remove(nina) }},
		{"nina gives it an owner", refused, func() error { return b.patchAs(keps, nina, "theos", owned, "dry") }},
		{"nina includes other pods", refused, func() error {
			return b.patchAs(keps, nina, "theos", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"drydock.dev/include": "Default"}}}, "dry")
		}},
		{"theo takes the finalizer off", "of theos is the bridge's", func() error {
			return b.patchAs(keps, theo, "theos", map[string]any{"metadata": map[string]any{"finalizers": nil}}, "dry")
		}},
		{"rita asks for her nodes", "", func() error { return create(nodes("worker-04", "worker-05")) }},
		{"rita asks for another's besides", "rita may not maintain nodes worker-04, worker-03", func() error { return create(nodes("worker-04", "worker-03")) }},
		{"rita asks for all", "rita may not maintain all nodes", func() error { return create(all) }},
		{"rita asks for many", "rita may not maintain all nodes", func() error { return create(nodes(slices.Repeat([]string{"worker-05"}, 9)...)) }},
		{"rita changes its nodes to hers", "", func() error { return b.patchAs(keps, rita, "theos", map[string]any{"spec": nodes("worker-04")}, "dry") }},
		{"rita adds six to her node", "", func() error {
			return b.patchAs(keps, rita, "theos", map[string]any{"spec": nodes(append(slices.Repeat([]string{"worker-04"}, 6), "worker-05")...)}, "dry")
		}},
		{"rita changes its nodes to another's", "may not maintain nodes worker-03, worker-05", func() error {
			return b.patchAs(keps, rita, "theos", map[string]any{"spec": nodes("worker-03")}, "dry")
		}},
		{"nina labels it", "", func() error {
			return b.patchAs(keps, nina, "theos", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}, "dry")
		}},
		{"theo sets a stage", "", func() error {
			return b.patchAs(keps, theo, "theos", map[string]any{"spec": map[string]any{"stage": "Cordon"}}, "dry")
		}},
		{"theo deletes it", "", func() error { return remove(theo) }},
	} {
		err := c.try()
		if c.says != "" {
			err = forbidden(err, c.says)
		}
		if err != nil {
			t.Errorf("%s: %v", c.who, err)
		}
	}
	b.remove(keps, "theos")
	b.wasRemoved(keps, "theos")
}
