package k8s_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func podWith(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default", UID: "pod-uid", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "owner", Controller: new(true)}}
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func withEmptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func mirror(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
}

var agents = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}}

func TestClassification(t *testing.T) {
	type consent struct{ force, emptyDir bool }
	none, force, emptyDir, both := consent{}, consent{force: true}, consent{emptyDir: true}, consent{true, true}
	for name, c := range map[string]struct {
		pod *corev1.Pod
		// want is the class under each consent, reason why it is refused without any.
		want   map[consent]k8s.Class
		reason string
		names  []string
	}{
		"of a controller": {
			pod:  podWith(ownedBy("ReplicaSet", "web")),
			want: map[consent]k8s.Class{none: k8s.Evict, force: k8s.Evict, emptyDir: k8s.Evict, both: k8s.Evict},
		},
		"of a DaemonSet": {
			pod:  podWith(ownedBy("DaemonSet", "agent")),
			want: map[consent]k8s.Class{none: k8s.Skip, force: k8s.Skip, emptyDir: k8s.Skip, both: k8s.Skip},
		},
		"of a DaemonSet, with an emptyDir": {
			pod:  podWith(ownedBy("DaemonSet", "agent"), withEmptyDir),
			want: map[consent]k8s.Class{none: k8s.Skip, force: k8s.Skip, emptyDir: k8s.Skip, both: k8s.Skip},
		},
		"of a DaemonSet that is gone": {
			pod:    podWith(ownedBy("DaemonSet", "ghost")),
			want:   map[consent]k8s.Class{none: k8s.Refuse, force: k8s.Evict, emptyDir: k8s.Refuse, both: k8s.Evict},
			reason: k8s.OrphanedPod, names: []string{"force"},
		},
		"of a DaemonSet that is gone, with an emptyDir": {
			pod:    podWith(ownedBy("DaemonSet", "ghost"), withEmptyDir),
			want:   map[consent]k8s.Class{none: k8s.Refuse, force: k8s.Refuse, emptyDir: k8s.Refuse, both: k8s.Evict},
			reason: k8s.LocalStorage, names: []string{"force", "deleteEmptyDir"},
		},
		"static": {
			pod:  podWith(mirror),
			want: map[consent]k8s.Class{none: k8s.Skip, force: k8s.Skip, emptyDir: k8s.Skip, both: k8s.Skip},
		},
		"bare": {
			pod:    podWith(),
			want:   map[consent]k8s.Class{none: k8s.Refuse, force: k8s.Evict, emptyDir: k8s.Refuse, both: k8s.Evict},
			reason: k8s.NoController, names: []string{"force"},
		},
		"with an emptyDir": {
			pod:    podWith(ownedBy("StatefulSet", "db"), withEmptyDir),
			want:   map[consent]k8s.Class{none: k8s.Refuse, force: k8s.Refuse, emptyDir: k8s.Evict, both: k8s.Evict},
			reason: k8s.LocalStorage, names: []string{"deleteEmptyDir"},
		},
		"bare, with an emptyDir": {
			pod:    podWith(withEmptyDir),
			want:   map[consent]k8s.Class{none: k8s.Refuse, force: k8s.Refuse, emptyDir: k8s.Refuse, both: k8s.Evict},
			reason: k8s.LocalStorage, names: []string{"force", "deleteEmptyDir"},
		},
		"succeeded, bare, with an emptyDir": {
			pod:  podWith(withEmptyDir, inPhase(corev1.PodSucceeded)),
			want: map[consent]k8s.Class{none: k8s.Evict, force: k8s.Evict, emptyDir: k8s.Evict, both: k8s.Evict},
		},
		"failed, bare": {
			pod:  podWith(inPhase(corev1.PodFailed)),
			want: map[consent]k8s.Class{none: k8s.Evict, force: k8s.Evict, emptyDir: k8s.Evict, both: k8s.Evict},
		},
	} {
		for given, want := range c.want {
			t.Run(name, func(t *testing.T) {
				client := k8stest.NewFake(agents)
				verdict, err := k8s.NewClassifier(client, given.force, given.emptyDir).Classify(t.Context(), c.pod)
				if err != nil {
					t.Fatal(err)
				}
				if verdict.Class != want {
					t.Errorf("%+v: %+v, want class %d", given, verdict, want)
				}
				if want == k8s.Refuse && given == none {
					if verdict.Reason != c.reason {
						t.Errorf("%+v: %+v, want reason %s", given, verdict, c.reason)
					}
					for _, consent := range []string{"force", "deleteEmptyDir"} {
						if strings.Contains(verdict.Message, consent) != contains(c.names, consent) {
							t.Errorf("%+v: %q, want the consents %v", given, verdict.Message, c.names)
						}
					}
				}
				if want == k8s.Refuse && !strings.Contains(verdict.Message, "consent") {
					t.Errorf("%+v: %q", given, verdict.Message)
				}
			})
		}
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func TestClassificationAsksForADaemonSetOnce(t *testing.T) {
	client := k8stest.NewFake(agents)
	classify := k8s.NewClassifier(client, false, false)
	for range 5 {
		for _, owner := range []string{"agent", "ghost"} {
			if _, err := classify.Classify(t.Context(), podWith(ownedBy("DaemonSet", owner))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(client.Actions()) != 2 {
		t.Errorf("%d requests: %v", len(client.Actions()), client.Actions())
	}
}

func TestClassificationWithoutAnAnswerIsNoVerdict(t *testing.T) {
	daemonSets := schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	for name, failure := range map[string]error{
		"forbidden":   apierrors.NewForbidden(daemonSets, "agent", errors.New("no")),
		"away":        apierrors.NewInternalError(errors.New("etcd")),
		"reset":       errors.New("connection reset by peer"),
		"not allowed": apierrors.NewUnauthorized("expired"),
	} {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(agents)
			failing := true
			client.PrependReactor("get", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
				return failing, nil, failure
			})
			// The pod's emptyDir would be refused for itself.
			pod := podWith(ownedBy("DaemonSet", "agent"), withEmptyDir)
			for _, consent := range []bool{true, false} {
				classify := k8s.NewClassifier(client, consent, consent)
				failing = true
				if verdict, err := classify.Classify(t.Context(), pod); !errors.Is(err, failure) || verdict != (k8s.Verdict{}) {
					t.Errorf("verdict = %+v, %v", verdict, err)
				}
				if verdict, err := classify.Classify(t.Context(), podWith()); err != nil || verdict.Class == k8s.Skip {
					t.Errorf("another pod: %+v, %v", verdict, err)
				}
				failing = false
				if verdict, err := classify.Classify(t.Context(), pod); err != nil || verdict.Class != k8s.Skip {
					t.Errorf("verdict = %+v, %v", verdict, err)
				}
			}
		})
	}
}

func TestSelection(t *testing.T) {
	gpu := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	}
	initRDMA := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"rdma/hca": resource.MustParse("1")},
		}}}
	}
	for name, c := range map[string]struct {
		selector  string
		resources []string
		pod       *corev1.Pod
		want      bool
	}{
		"everything":              {"", nil, podWith(), true},
		"label":                   {"app=web", nil, podWith(), true},
		"another label":           {"app in (db)", nil, podWith(), false},
		"no label":                {"!app", nil, podWith(), false},
		"resource":                {"", []string{`nvidia\.com/.*`}, podWith(gpu), true},
		"no such resource":        {"", []string{`nvidia\.com/.*`}, podWith(), false},
		"one of two resources":    {"", []string{`^rdma/`, `^nvidia`}, podWith(gpu), true},
		"limit of an init":        {"", []string{`^rdma/`}, podWith(initRDMA), true},
		"label and resource":      {"app=web", []string{`^rdma/`}, podWith(initRDMA), true},
		"label but not resource":  {"app=web", []string{`^rdma/`}, podWith(gpu), false},
		"resource but not label":  {"app=db", []string{`^nvidia`}, podWith(gpu), false},
		"part of a resource name": {"", []string{`gpu`}, podWith(gpu), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := k8s.NewSelection(c.selector, c.resources)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Selects(c.pod); got != c.want {
				t.Errorf("selects = %v", got)
			}
		})
	}
	for _, wrong := range []struct {
		selector  string
		resources []string
	}{{"a=(", nil}, {"", []string{"("}}} {
		if _, err := k8s.NewSelection(wrong.selector, wrong.resources); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
}
