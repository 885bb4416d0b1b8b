package health

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/serviceerror"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	rules "drydock.dev/drydock/rules/health"
)

const (
	group       = "restarter.example.com/v1alpha1"
	ofResource  = "restarter.example.com/restarts/fixers/"
	leaseOfNode = "coordination.k8s.io/leases/medik8s-leases/node-n1"
)

// withTemplates serves a remediator's kinds, and has a template.
func (s *site) withTemplates(annotations string) ObjectInput {
	s.kinds.Serve(group, "RestartTemplate", "restarttemplates", true)
	s.kinds.Serve(group, "Restart", "restarts", true)
	s.kinds.Set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"fixers"}}`)
	s.kinds.Set(`{"apiVersion":"` + group + `","kind":"RestartTemplate","metadata":{"name":"t","namespace":"fixers","labels":{"a":"b"},"annotations":{` + annotations + `}},
		"spec":{"template":{"spec":{"times":3,"how":{"fast":true}}}}}`)
	return ObjectInput{
		Check: "workers", Node: "n1", UID: "uid-1", RunID: "r-run", Slot: "r-run/1",
		Template: rules.TemplateRef{APIVersion: group, Kind: "RestartTemplate", Namespace: "fixers", Name: "t"},
	}
}

const multiple = `"remediation.medik8s.io/multiple-templates-support":"true"`

func (s *site) ensure(in ObjectInput) EnsuredObject {
	s.Helper()
	made, err := activitytest.Call(s.T, s.acts.EnsureObject, in)
	if err != nil {
		s.Fatal(err)
	}
	return made
}

func TestARemediationObjectIsMadeFromItsTemplate(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown", activitytest.Labelled("node-role.kubernetes.io/master", "")),
		worker("m2", "True", activitytest.Labelled("node-role.kubernetes.io/master", "")),
		worker("m3", "True", activitytest.Labelled("node-role.kubernetes.io/master", "")))
	in := s.withTemplates("")
	s.kinds.Serve(ownerAPIVersion, ownerKind, "nodehealthchecks", false)
	s.kinds.Set(`{"apiVersion":"` + ownerAPIVersion + `","kind":"NodeHealthCheck","metadata":{"name":"workers"}}`)
	made := s.ensure(in)
	o := s.kinds.Find(ofResource + "n1")
	if made.Resource == nil || o == nil || made.Resource.Name != "n1" || made.Resource.UID != string(o.GetUID()) || made.Found || !made.Lease.Held || time.Since(made.StartedAt) > time.Minute {
		t.Fatalf("%+v, %v", made, o)
	}
	times, _, err := unstructured.NestedInt64(o.Object, "spec", "times")
	if err != nil || times != 3 || o.GetLabels()[partOfLabel] != partOf || o.GetLabels()[checkLabel] != "workers" || len(o.GetLabels()) != 4-1 ||
		o.GetAnnotations()[nodeNameAnnotation] != "n1" || o.GetAnnotations()[templateNameAnnotation] != "t" {
		t.Errorf("%v, %v", o.Object, err)
	}
	owners := o.GetOwnerReferences()
	if len(owners) != 1 || owners[0].Kind != ownerKind || owners[0].Name != "workers" || owners[0].UID == "" || *owners[0].Controller {
		t.Errorf("owners %+v", owners)
	}
	if again := s.ensure(in); !again.Found || *again.Resource != *made.Resource {
		t.Errorf("again %+v", again)
	}
}

func TestWhatARemediationThatHasEndedLeftAtWorkIsSeen(t *testing.T) {
	s, m := newSite(t, worker("n1", "Unknown")), newMaintenances()
	m.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(nil, serviceerror.NewNotFound("there is none"))
	s.acts.Temporal = m
	see := func(workflow string, want bool) {
		t.Helper()
		if got, err := activitytest.Call(t, s.acts.SeeLeftWork, LeftInput{WorkflowID: workflow}); err != nil || got != want {
			t.Errorf("%s: %t, %v", workflow, got, err)
		}
	}
	see("node-remediation/workers/n1", false)
	m.status, m.running = ours, true // its lease ends before it does
	see("node-remediation/workers/n1", true)
	m.status = theirs
	see("node-remediation/workers/n1", false)
	m.status, m.running = ours, false
	see("node-remediation/workers/n1", false)
	s.ensure(s.withTemplates(""))
	see("node-remediation/workers/n1", true)
	see("node-remediation/others/n1", false)
	if _, err := activitytest.Call(t, s.acts.SeeLeftWork, LeftInput{WorkflowID: "node-maintenance/n1/ops"}); err == nil {
		t.Error("a maintenance has no such lease")
	}
}

func TestALostAnswerMakesNoSecondObject(t *testing.T) {
	for name, annotations := range map[string]string{"named as the node": "", "of any name": multiple} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			in := s.withTemplates(annotations)
			s.kinds.Lose = func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "restarts")
			}
			if made, err := activitytest.Call(t, s.acts.EnsureObject, in); err == nil {
				t.Fatalf("it was answered: %+v", made)
			}
			s.kinds.Lose = nil
			made := s.ensure(in)
			if all := s.kinds.Names("restarter.example.com/restarts"); len(all) != 1 || !made.Found || !strings.HasSuffix(all[0], "/"+made.Resource.Name) {
				t.Errorf("%v, %+v", all, made)
			}
		})
	}
}

func TestObjectsOfOneKindForTwoSteps(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	first := s.withTemplates(multiple)
	second := first
	second.Step, second.Template.Name = 1, "u"
	s.kinds.Set(`{"apiVersion":"` + group + `","kind":"RestartTemplate","metadata":{"name":"u","namespace":"fixers","annotations":{` + multiple + `}},"spec":{"template":{}}}`)
	a, b := s.ensure(first), s.ensure(second)
	if a.Resource == nil || b.Resource == nil || a.Resource.Name == b.Resource.Name || !strings.HasPrefix(b.Resource.Name, "n1-") || len(b.Resource.Name) != len("n1-")+5 {
		t.Errorf("%+v and %+v", a.Resource, b.Resource)
	}
}

func TestTheSecondTemplateOfAKindRunsWithoutAnAnnotation(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	first := s.withTemplates("")
	second := first
	second.Step, second.Template.Name = 1, "u"
	s.kinds.Set(`{"apiVersion":"` + group + `","kind":"RestartTemplate","metadata":{"name":"u","namespace":"fixers"},"spec":{"template":{}}}`)
	a, b := s.ensure(first), s.ensure(second)
	if a.Resource == nil || b.Resource == nil || a.Resource.Name != "n1" || !strings.HasPrefix(b.Resource.Name, "n1-") {
		t.Fatalf("%+v and %+v", a, b)
	}
	if again := s.ensure(second); !again.Found || *again.Resource != *b.Resource {
		t.Errorf("again %+v", again)
	}
}

func TestWhatStandsInTheWay(t *testing.T) {
	object := func(meta string) string {
		return `{"apiVersion":"` + group + `","kind":"Restart","metadata":{"namespace":"fixers",` + meta + `}}`
	}
	for name, c := range map[string]struct {
		prepare func(s *site, in *ObjectInput)
		want    func(EnsuredObject) bool
	}{
		"somebody else's object": {func(s *site, _ *ObjectInput) {
			s.kinds.Set(object(`"name":"n1","ownerReferences":[{"apiVersion":"` + ownerAPIVersion + `","kind":"NodeHealthCheck","name":"other","uid":"u"}]`))
		}, func(e EnsuredObject) bool { return strings.Contains(e.NotOwned, "NodeHealthCheck other") }},
		"somebody else's of another name": {func(s *site, _ *ObjectInput) {
			s.kinds.Set(`{"apiVersion":"` + group + `","kind":"RestartTemplate","metadata":{"name":"t","namespace":"fixers","annotations":{` + multiple + `}},"spec":{"template":{}}}`)
			s.kinds.Set(object(`"name":"x","annotations":{"` + nodeNameAnnotation + `":"n1","` + templateNameAnnotation + `":"t"}`))
		}, func(e EnsuredObject) bool { return strings.Contains(e.NotOwned, "Restart x") }},
		"an earlier one that is being deleted": {func(s *site, _ *ObjectInput) {
			s.kinds.Set(object(`"name":"n1","labels":{"` + checkLabel + `":"workers"},"finalizers":["a/b"],"deletionTimestamp":"2026-01-01T00:00:00Z"`))
		}, func(e EnsuredObject) bool { return strings.Contains(e.Waiting, "being deleted") }},
		"the lease": {func(s *site, _ *ObjectInput) {
			s.kinds.Set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"medik8s-leases"}}`)
			s.kinds.Set(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"node-n1","namespace":"medik8s-leases"},
				"spec":{"holderIdentity":"node-maintenance","leaseDurationSeconds":3600,"renewTime":"` + time.Now().UTC().Format(metav1.RFC3339Micro) + `"}}`)
		}, func(e EnsuredObject) bool { return e.LeaseHeldBy == "node-maintenance" }},
		"the label": {func(s *site, _ *ObjectInput) {
			s.server.Set(worker("n1", "Unknown", activitytest.Labelled(k8s.ExcludeLabel, "true")))
		}, func(e EnsuredObject) bool { return strings.Contains(e.Skipped, k8s.ExcludeLabel) }},
		"a maintenance": {func(s *site, _ *ObjectInput) {
			s.server.Set(worker("n1", "Unknown", activitytest.Marked("node-maintenance/n1/ops", "r")))
		}, func(e EnsuredObject) bool { return strings.Contains(e.Skipped, "node-maintenance/n1/ops") }},
		"its recovery": {func(_ *site, in *ObjectInput) {
			in.Conditions = []rules.UnhealthyCondition{{Type: "Ready", Status: "False"}, {Type: "DiskPressure", Status: "True"}}
		}, func(e EnsuredObject) bool { return e.Skipped == recovered }},
		"no node": {func(_ *site, in *ObjectInput) { in.Node = "n9" }, func(e EnsuredObject) bool { return e.NodeGone && e.NodeUID == "" }},
		"another node of its name": {func(_ *site, in *ObjectInput) { in.UID = "uid-0" },
			func(e EnsuredObject) bool { return e.NodeGone && e.NodeUID == "uid-1" }},
		"no template": {func(_ *site, in *ObjectInput) { in.Template.Name = "u" },
			func(e EnsuredObject) bool { return e.FailureReason == rules.DisabledTemplateNotFound }},
		"no such kind": {func(_ *site, in *ObjectInput) { in.Template.Kind = "OtherTemplate" },
			func(e EnsuredObject) bool { return e.FailureReason == rules.DisabledTemplateNotFound }},
		"no namespace": {func(_ *site, in *ObjectInput) { in.Template.Namespace = "" },
			func(e EnsuredObject) bool { return e.FailureReason == rules.DisabledTemplateNotFound }},
		"no spec.template": {func(s *site, _ *ObjectInput) {
			s.kinds.Set(`{"apiVersion":"` + group + `","kind":"RestartTemplate","metadata":{"name":"t","namespace":"fixers"},"spec":{}}`)
		}, func(e EnsuredObject) bool { return e.FailureReason == rules.DisabledTemplateInvalid }},
		"the control plane, without a slot": {func(s *site, in *ObjectInput) {
			in.Slot = ""
			s.server.Set(worker("n1", "Unknown", activitytest.Labelled("node-role.kubernetes.io/control-plane", "")))
		}, func(e EnsuredObject) bool { return e.NeedsSlot }},
		"a slot that is not held": {func(s *site, in *ObjectInput) {
			in.ControlPlane = true
			s.acts.Temporal = activitytest.Granting(api.SlotHeld{})
		}, func(e EnsuredObject) bool { return e.NeedsSlot }},
		"a scheduler that does not know": {func(s *site, in *ObjectInput) {
			in.ControlPlane = true
			s.acts.Temporal = activitytest.Granting(api.SlotHeld{Rebuilding: true})
		}, func(e EnsuredObject) bool { return strings.Contains(e.Waiting, "who holds a slot") }},
		"the control plane": {func(s *site, in *ObjectInput) {
			in.ControlPlane = true
			s.server.Set(worker("m2", "Unknown", activitytest.Labelled("node-role.kubernetes.io/control-plane", "")))
		}, func(e EnsuredObject) bool { return strings.Contains(e.Indispensable, "majority") && e.Lease.Held }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			in := s.withTemplates("")
			c.prepare(s, &in)
			before := len(s.kinds.Names("restarter.example.com/restarts"))
			made := s.ensure(in)
			if made.Resource != nil || !c.want(made) {
				t.Errorf("%+v", made)
			}
			if after := len(s.kinds.Names("restarter.example.com/restarts")); after != before {
				t.Errorf("%d objects, and there were %d", after, before)
			}
		})
	}
}

func TestEtcdsBudget(t *testing.T) {
	budget := func(name string, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "etcd", Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guard"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	guard := func(ready ...corev1.ConditionStatus) *corev1.Pod {
		p := activitytest.PodOf("guard", "guard")
		p.Namespace, p.Spec.NodeName, p.Status.Conditions = "etcd", "n1", nil
		for _, status := range ready {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status})
		}
		return p
	}
	changed := budget("a", 1)
	changed.Generation = 2
	changed.Status.ObservedGeneration = 1
	for name, c := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		guard   *corev1.Pod
		want    bool
	}{
		"it allows one":                  {[]*policyv1.PodDisruptionBudget{budget("a", 1)}, guard("True"), true},
		"none, and the guard is Ready":   {[]*policyv1.PodDisruptionBudget{budget("a", 0)}, guard("True"), false},
		"none, and the guard is Unknown": {[]*policyv1.PodDisruptionBudget{budget("a", 0)}, guard("Unknown"), false},
		"none, and the guard is down":    {[]*policyv1.PodDisruptionBudget{budget("a", 0)}, guard("False"), true},
		"none, and the guard says none":  {[]*policyv1.PodDisruptionBudget{budget("a", 0)}, guard(), true},
		"none, and no guard":             {[]*policyv1.PodDisruptionBudget{budget("a", 0)}, nil, true},
		"one before it was changed":      {[]*policyv1.PodDisruptionBudget{changed}, guard("True"), false},
		"no budget":                      {nil, nil, false},
		"two budgets":                    {[]*policyv1.PodDisruptionBudget{budget("a", 1), budget("b", 1)}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			for _, b := range c.budgets {
				s.server.Set(b)
			}
			if c.guard != nil {
				s.server.Set(c.guard)
			}
			may, err := s.acts.mayLose(t.Context(), "n1", &rules.EtcdQuestion{Etcd: rules.Etcd{Namespace: "etcd"}})
			if err != nil || may.Allowed != c.want || (may.Why == "") != c.want {
				t.Errorf("%+v, %v", may, err)
			}
		})
	}
}

// Etcd is asked wherever nothing was made yet, whichever step comes first, and nothing is made where it does not answer.
func TestNothingIsMadeOfAControlPlaneNodeWithoutEtcdsWord(t *testing.T) {
	for name, c := range map[string]struct {
		step    int
		begun   bool
		denied  bool
		made    bool
		refused string
	}{
		"its budget allows none":        {refused: "0 budgets"},
		"nor for a later step":          {step: 1, refused: "0 budgets"},
		"a step has made something":     {step: 1, begun: true, made: true},
		"the budgets cannot be read":    {denied: true},
		"nor for a later step, as well": {step: 1, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown", activitytest.Labelled("node-role.kubernetes.io/control-plane", "")))
			in := s.withTemplates("")
			if c.denied {
				s.deny("list", "policy", "poddisruptionbudgets", "etcd")
			}
			in.Etcd, in.Step, in.Begun = &rules.EtcdQuestion{Etcd: rules.Etcd{Namespace: "etcd"}}, c.step, c.begun
			made, err := activitytest.Call(t, s.acts.EnsureObject, in)
			if (err != nil) != c.denied || (made.Resource != nil) != c.made || !strings.Contains(made.Indispensable, c.refused) {
				t.Errorf("%+v, %v", made, err)
			}
			if there := len(s.kinds.Names("restarter.example.com/restarts")); (there == 1) != c.made {
				t.Errorf("there are %d objects", there)
			}
			m := newMaintenances()
			m.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(nil, serviceerror.NewNotFound("there is none"))
			s.acts.Temporal = m
			begun, err := activitytest.Call(t, s.acts.BeginRepair, RepairInput{
				Check: "workers", Node: "n1", ControlPlane: true, Step: c.step, Begun: c.begun, Slot: "r-run/1", Etcd: in.Etcd, Repair: rules.Repair{},
			})
			if (err != nil) != c.denied || (begun.RunID != "") != c.made || !strings.Contains(begun.Indispensable, c.refused) || (len(m.inputs) == 1) != c.made {
				t.Errorf("%+v, %v, began %q", begun, err, m.inputs)
			}
		})
	}
}

func TestEtcdOfKubeadm(t *testing.T) {
	member := func(node string, ready corev1.ConditionStatus) *corev1.Pod {
		p := activitytest.PodOf("etcd-"+node, "etcd-"+node)
		p.Namespace, p.Spec.NodeName, p.Labels = "kube-system", node, map[string]string{"component": "etcd", "tier": "control-plane"}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return p
	}
	for name, c := range map[string]struct {
		members []*corev1.Pod
		etcd    *rules.EtcdQuestion
		want    bool
	}{
		"the others are Ready":      {[]*corev1.Pod{member("n1", "False"), member("n2", "True"), member("n3", "True")}, nil, true},
		"one of them is not":        {[]*corev1.Pod{member("n1", "False"), member("n2", "True"), member("n3", "False")}, nil, false},
		"there are two":             {[]*corev1.Pod{member("n1", "False"), member("n2", "True")}, nil, false},
		"there is one":              {[]*corev1.Pod{member("n1", "True")}, nil, false},
		"none is on the node":       {[]*corev1.Pod{member("n2", "True")}, nil, true},
		"one, and all are allowed":  {[]*corev1.Pod{member("n1", "True")}, &rules.EtcdQuestion{Allow: rules.AllowAlways}, true},
		"no pods, all are allowed":  {nil, &rules.EtcdQuestion{Allow: rules.AllowAlways}, true},
		"no pods, a majority is up": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown", activitytest.Labelled("node-role.kubernetes.io/control-plane", "")))
			for _, p := range c.members {
				s.server.Set(p)
			}
			may, err := s.acts.mayLose(t.Context(), "n1", c.etcd)
			if err != nil || may.Allowed != c.want || (may.Why == "") != c.want {
				t.Errorf("%+v, %v", may, err)
			}
		})
	}
}

func TestNoBudgetOnOpenShiftAllowsNothing(t *testing.T) {
	plane := activitytest.Labelled("node-role.kubernetes.io/master", "")
	s := newSite(t, worker("n1", "Unknown", plane), worker("n2", "True", plane), worker("n3", "True", plane))
	s.kinds.Serve("config.openshift.io/v1", "ClusterVersion", "clusterversions", false)
	if may, err := s.acts.mayLose(t.Context(), "n1", nil); err != nil || may.Allowed || !strings.Contains(may.Why, "0 budgets") {
		t.Errorf("%+v, %v", may, err)
	}
}

func TestMarksAndRemoval(t *testing.T) {
	s := newSite(t, worker("n1", "True", annotated(k8s.ConfirmedAnnotation, "ann")))
	made := s.ensure(s.withTemplates(""))
	objects := []rules.Resource{*made.Resource}
	mark := func(in MarkInput) map[string]string {
		t.Helper()
		in.Check, in.Objects = "workers", objects
		if _, err := activitytest.Call(t, s.acts.MarkObjects, in); err != nil {
			t.Fatal(err)
		}
		return s.kinds.Find(ofResource + "n1").GetAnnotations()
	}
	at, later := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)
	mark(MarkInput{TimedOut: &at, Old: true})
	got := mark(MarkInput{TimedOut: &later, HealthySince: &at})
	if got[timedOutAnnotation] != "2026-01-02T03:04:05Z" || got[delayAnnotation] != "2026-01-02T03:04:05Z" || got[oldAnnotation] != "" {
		t.Errorf("marks %v", got)
	}
	if got := mark(MarkInput{HealthySince: &later})[delayAnnotation]; got != "2026-01-02T04:04:05Z" {
		t.Errorf("after a relapse it shows %s", got)
	}
	if _, there := mark(MarkInput{Relapsed: true})[delayAnnotation]; there {
		t.Error("the mark of the delay is still there")
	}
	o := s.kinds.Find(ofResource + "n1")
	o.SetFinalizers([]string{"a/b"})
	text, _ := o.MarshalJSON()
	s.kinds.Set(string(text))
	remove := func() Removed {
		t.Helper()
		removed, err := activitytest.Call(t, s.acts.RemoveObjects, RemoveInput{Check: "workers", Node: "n1", Objects: objects})
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	if removed := remove(); removed.Done || removed.Gone[0] || s.kinds.Find(leaseOfNode) == nil {
		t.Errorf("with a finalizer %+v", removed)
	}
	s.kinds.Delete(ofResource + "n1")
	_, confirmed := s.server.Node("n1").Annotations[k8s.ConfirmedAnnotation]
	if !confirmed {
		t.Error("the confirmation was taken off before the objects were gone")
	}
	removed := remove()
	_, confirmed = s.server.Node("n1").Annotations[k8s.ConfirmedAnnotation]
	if !removed.Done || !removed.Gone[0] || confirmed || s.kinds.Find(leaseOfNode) != nil {
		t.Errorf("%+v, confirmed %v", removed, confirmed)
	}
}

func TestARemediationIsFollowed(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	made := s.ensure(s.withTemplates(""))
	in := RemediationWatch{
		Check: "workers", Node: "n1", UID: "uid-1", Objects: []WatchedObject{{Index: 2, Resource: *made.Resource}}, Lease: &LeaseWant{},
		Conditions: check("").Intent.Conditions,
	}
	watch := func(change func()) RemediationSeen {
		t.Helper()
		if change != nil {
			go change()
		}
		seen, err := activitytest.Call(t, s.acts.WatchRemediation, in)
		if err != nil {
			t.Fatal(err)
		}
		in.Known = &seen
		return seen
	}
	status := func(conditions string) func() {
		return func() {
			o := s.kinds.Find(ofResource + "n1")
			text, _ := o.MarshalJSON()
			s.kinds.Set(strings.TrimSuffix(strings.TrimSpace(string(text)), "}") + `,"status":{"conditions":[` + conditions + `]}}`)
		}
	}
	if first := watch(nil); !first.Ill || !first.Lease.Held || first.Objects[0].Index != 2 || first.Objects[0].Gone || first.Objects[0].Succeeded != nil {
		t.Errorf("first %+v", first)
	}
	if seen := watch(status(`{"type":"Succeeded","status":"False","message":"it did not come back"}`)); seen.Objects[0].Succeeded == nil || *seen.Objects[0].Succeeded {
		t.Errorf("after a failure %+v", seen)
	}
	if seen := watch(func() { s.server.Set(worker("n1", "True")) }); seen.Ill {
		t.Errorf("after a recovery %+v", seen)
	}
	if seen := watch(func() { s.kinds.Delete(ofResource + "n1") }); !seen.Objects[0].Gone {
		t.Errorf("after a deletion %+v", seen)
	}
	if seen := watch(func() { s.server.Delete(worker("n1", "True")) }); !seen.NodeGone {
		t.Errorf("after the node's deletion %+v", seen)
	}
}

// machineSite has a node whose annotation names machine "a" of the namespace of the template.
func machineSite(t *testing.T, machine string) (*site, ObjectInput) {
	s := newSite(t, worker("n1", "Unknown", annotated(machineAnnotation, "fixers/a"), func(n *corev1.Node) { n.Spec.ProviderID = "cloud://1" }))
	in := s.withTemplates("")
	s.kinds.Serve("machine.openshift.io/v1beta1", "Machine", "machines", true)
	if machine != "" {
		s.kinds.Set(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"namespace":"fixers","name":"a"},` + machine + `}`)
	}
	return s, in
}

func TestAMachineOwnsTheObjectsOfTheNodeThatItNames(t *testing.T) {
	for name, machine := range map[string]string{
		"by UID":                  `"status":{"nodeRef":{"name":"n1","uid":"uid-1"}}`,
		"by name and provider ID": `"spec":{"providerID":"cloud://1"},"status":{"nodeRef":{"name":"n1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, in := machineSite(t, machine)
			made := s.ensure(in)
			o := s.kinds.Find(ofResource + "n1")
			if made.Resource == nil || o == nil || len(o.GetOwnerReferences()) != 1 || o.GetOwnerReferences()[0].Name != "a" {
				t.Errorf("%+v, %v", made, o)
			}
		})
	}
}

func TestAnAnnotationDoesNotRedirectARemediation(t *testing.T) {
	for name, machine := range map[string]string{
		"another node's":           `"spec":{"providerID":"cloud://2"},"status":{"nodeRef":{"name":"n2","uid":"uid-2"}}`,
		"the node's by name alone": `"spec":{"providerID":"cloud://2"},"status":{"nodeRef":{"name":"n1","uid":"uid-2"}}`,
		"nobody's":                 `"spec":{}`,
		"missing":                  "",
	} {
		t.Run(name, func(t *testing.T) {
			s, in := machineSite(t, machine)
			made := s.ensure(in)
			if made.Resource != nil || !strings.Contains(made.Unproven, "machine fixers/a") || s.kinds.Find(ofResource+"n1") != nil {
				t.Errorf("%+v", made)
			}
			if s.kinds.Find(leaseOfNode) != nil {
				t.Error("the lease is held for nothing")
			}
		})
	}
}

// TestAConflictDeletesNothing: a deletion may be answered with Conflict while the object is the one that it is about.
func TestAConflictDeletesNothing(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	made := s.ensure(s.withTemplates(""))
	refused := map[string]bool{}
	s.kinds.Refuse = func(r *http.Request) int {
		if r.Method == http.MethodDelete && !refused[r.URL.Path] {
			refused[r.URL.Path] = true
			return http.StatusConflict
		}
		return 0
	}
	in := RemoveInput{Check: "workers", Node: "n1", Objects: []rules.Resource{*made.Resource}}
	removed, err := activitytest.Call(t, s.acts.RemoveObjects, in)
	if err != nil || removed.Done || removed.Gone[0] || s.kinds.Find(ofResource+"n1") == nil || s.kinds.Find(leaseOfNode) == nil {
		t.Errorf("after a conflict %+v, %v", removed, err)
	}
	removed, err = activitytest.Call(t, s.acts.RemoveObjects, in)
	if err != nil || !removed.Done || s.kinds.Find(ofResource+"n1") != nil || s.kinds.Find(leaseOfNode) != nil {
		t.Errorf("asked again %+v, %v", removed, err)
	}
}
