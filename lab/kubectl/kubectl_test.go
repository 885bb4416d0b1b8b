// Package kubectl holds what Drydock takes over from kubectl drain to kubectl itself.
package kubectl

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubectl/pkg/drain"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

// TestClassificationIsKubectls asks kubectl's filters about pods of every sort, under every consent.
func TestClassificationIsKubectls(t *testing.T) {
	of := func(version, kind, name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: "owner", Controller: new(true)}}
		}
	}
	in := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	plain := func(*corev1.Pod) {}
	agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}}
	traits := []map[string]func(*corev1.Pod){
		{
			"bare": plain, "of a ReplicaSet": of("apps/v1", "ReplicaSet", "web"), "of a DaemonSet": of("apps/v1", "DaemonSet", "agent"),
			"of a DaemonSet that is gone": of("apps/v1", "DaemonSet", "ghost"), "of another DaemonSet": of("example.com/v1", "DaemonSet", "agent"),
			"owned by what does not control it": func(p *corev1.Pod) {
				of("apps/v1", "DaemonSet", "agent")(p)
				p.OwnerReferences[0].Controller = nil
			},
		},
		{
			"running": plain, "pending": in(corev1.PodPending), "succeeded": in(corev1.PodSucceeded), "failed": in(corev1.PodFailed),
			"ending": func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) },
		},
		{"with nothing": plain, "with an emptyDir": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}},
		{"of the API server": plain, "static": func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"} }},
	}
	pods := map[string][]func(*corev1.Pod){"": nil}
	for _, trait := range traits {
		next := map[string][]func(*corev1.Pod){}
		for name, changes := range pods {
			for more, change := range trait {
				next[name+" "+more] = append(changes[:len(changes):len(changes)], change)
			}
		}
		pods = next
	}
	for name, changes := range pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default", UID: "pod-uid", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
		for _, change := range changes {
			change(pod)
		}
		for _, force := range []bool{false, true} {
			for _, emptyDir := range []bool{false, true} {
				verdict, err := k8s.NewClassifier(k8stest.NewFake(agents), force, emptyDir).Classify(t.Context(), pod)
				if err != nil {
					t.Fatal(err)
				}
				helper := drain.Helper{
					Ctx: t.Context(), Client: fake.NewClientset(agents, pod), Force: force, DeleteEmptyDirData: emptyDir, IgnoreAllDaemonSets: true,
				}
				list, errs := helper.GetPodsForDeletion(pod.Spec.NodeName)
				want := k8s.Skip
				switch {
				case len(errs) > 0:
					want = k8s.Refuse
				case len(list.Pods()) == 1:
					want = k8s.Evict
				}
				if verdict.Class != want {
					t.Errorf("%s, force %t, emptyDir %t: %+v, kubectl says %d %v", name, force, emptyDir, verdict, want, fmt.Sprint(errs))
				}
			}
		}
	}
}
