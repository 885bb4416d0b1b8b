package activitytest

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// PodOf is a pod of an application, ready on node n1.
func PodOf(app, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// NodeOption changes a node before it is used.
type NodeOption func(*corev1.Node)

// Node is a node that is ready.
func Node(name string, options ...NodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, option := range options {
		option(n)
	}
	return n
}

// Cordoned is an option: the node is unschedulable.
func Cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// Silent is an option: the kubelet of the node does not answer.
func Silent(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// NotReady is an option: the kubelet of the node says that it is not Ready.
func NotReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

// Labelled is an option: the node has a label.
func Labelled(key, value string) NodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// Marked is held by a workflow that wants the cordon.
func Marked(workflow, run string) NodeOption {
	return MarkedBy(k8s.Holder{WorkflowID: workflow, RunID: run, Run: run})
}

// MarkedBy is held by a maintenance of ops that wants the cordon.
func MarkedBy(h k8s.Holder) NodeOption {
	h.Requestor, h.Cordon = "ops", true
	return func(n *corev1.Node) {
		text, err := json.Marshal(k8s.Mark{Holders: []k8s.Holder{h}, Cordoned: true})
		if err != nil {
			panic(err)
		}
		n.Annotations[api.HoldersAnnotation] = string(text)
	}
}

// HeldNode is a node that the workflow of the test environment holds.
func HeldNode() *corev1.Node { return Node("n1", Cordoned, Marked(WorkflowID, RunID)) }

// PodOption changes a pod before it is used.
type PodOption func(*corev1.Pod)

// Pod is a pod of the application web.
func Pod(name string, options ...PodOption) *corev1.Pod {
	p := PodOf("web", name)
	for _, option := range options {
		option(p)
	}
	return p
}

// EvictionRequest is the EvictionRequest that the test's maintenance files for a pod.
func EvictionRequest(p *corev1.Pod, age time.Duration) *lifecyclev1alpha1.EvictionRequest {
	name := k8s.EvictionRequests{RunID: RunID}.Name(p)
	return &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: p.Namespace, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
			Labels: map[string]string{"drydock.dev/maintenance-run": RunID},
		},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Requester: k8s.Requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
			Target: lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: p.Name, UID: p.UID}},
		},
	}
}
