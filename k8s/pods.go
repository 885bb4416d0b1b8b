package k8s

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// OwnerOf is who re-creates a pod, empty for nobody.
func OwnerOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + owner.Name
}

// PodName is "namespace/name".
func PodName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// IsFinished reports whether a pod has run to its end.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ArrivedAt is when a pod came to its node. Intruding is true unless it is one of those that belong on a node out of service: DaemonSet
// pods, static pods, what Drydock runs there itself, and what has ended or is about to.
func ArrivedAt(pod *corev1.Pod) (at time.Time, intruding bool) {
	at = pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	owner := metav1.GetControllerOf(pod)
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return at, !static && !saysOwn(pod) && !IsFinished(pod) && pod.DeletionTimestamp == nil && (owner == nil || owner.Kind != "DaemonSet")
}

// Selection chooses the pods a drain is about, before any question of consent: a pod outside it never blocks.
type Selection struct {
	selector labels.Selector
	// resources select pods that use a matching resource; none selects all.
	resources []*regexp.Regexp
	// own are the namespaces of Drydock's own Jobs.
	own []string
}

// NewSelection compiles a label selector and regular expressions over resource names, joined by OR.
func NewSelection(podSelector string, resourceRegexps []string) (Selection, error) {
	var s Selection
	var err error
	if s.selector, err = labels.Parse(podSelector); err != nil {
		return s, fmt.Errorf("podSelector: %w", err)
	}
	for _, text := range resourceRegexps {
		re, err := regexp.Compile(text)
		if err != nil {
			return s, fmt.Errorf("podEvictionFilters: %w", err)
		}
		s.resources = append(s.resources, re)
	}
	return s, nil
}

// Sparing is the selection without the pods of the Jobs that Drydock runs in these namespaces.
func (s Selection) Sparing(namespaces []string) Selection {
	s.own = namespaces
	return s
}

// IsOwn reports whether a pod is of a Job of Drydock's own: of a check, a hook or work. Its label alone does not say so: others
// can put that on any pod, but they cannot create pods in those namespaces.
func (s Selection) IsOwn(pod *corev1.Pod) bool {
	return saysOwn(pod) && slices.Contains(s.own, pod.Namespace)
}

// saysOwn reports whether a pod of a Job has the label of those that Drydock runs.
func saysOwn(pod *corev1.Pod) bool {
	_, labelled := pod.Labels[api.WorkflowLabel]
	owner := metav1.GetControllerOf(pod)
	return labelled && owner != nil && owner.Kind == "Job"
}

// Selects reports whether a drain is about this pod.
func (s Selection) Selects(pod *corev1.Pod) bool {
	return !s.IsOwn(pod) && s.selector.Matches(labels.Set(pod.Labels)) && (len(s.resources) == 0 || s.uses(pod))
}

func (s Selection) uses(pod *corev1.Pod) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
				for name := range list {
					for _, re := range s.resources {
						if re.MatchString(string(name)) {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// Class is what a drain does with a pod.
type Class int

// The classes. A skipped pod stays and does not keep the node from being drained; a refused one does until somebody
// consents or removes it.
const (
	Evict Class = iota
	Skip
	Refuse
)

// Reasons for skipping or refusing a pod.
const (
	NotSelected   = "NotSelected"
	OwnPod        = "OwnPod"
	DaemonSetPod  = "DaemonSet"
	StaticPod     = "StaticPod"
	LocalStorage  = api.ReasonLocalStorage
	NoController  = api.ReasonNoController
	OrphanedPod   = api.ReasonOrphaned
	consentStore  = "the pod has an emptyDir volume whose data would be lost: consent with deleteEmptyDir, or delete the pod"
	consentBoth   = "the pod's emptyDir data would be lost, and no controller would re-create it: consent with deleteEmptyDir and force, or delete the pod"
	consentBare   = "no controller would re-create the pod: consent with force, or delete the pod"
	consentOrphan = "the pod's DaemonSet is gone: consent with force, or delete the pod"
)

// Verdict is the classification of one pod.
type Verdict struct {
	Class   Class
	Reason  string
	Message string
	// NeedsForce and NeedsDeleteEmptyDir are the consents by which a refused pod would be evicted.
	NeedsForce, NeedsDeleteEmptyDir bool
}

// WithoutStorageConsent is the verdict on a pod whose emptyDir data nobody consented to lose.
var WithoutStorageConsent = Verdict{Class: Refuse, Reason: LocalStorage, Message: consentStore, NeedsDeleteEmptyDir: true}

// HasEmptyDir reports whether a pod's end loses the data of an emptyDir volume.
func HasEmptyDir(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// wishes are the annotations by which pods ask not to be disrupted, with the values that do: the cluster autoscaler's
// and karpenter's.
var wishes = []struct{ annotation, value string }{
	{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
	{"karpenter.sh/do-not-disrupt", "true"},
}

// WishOf is the annotation, "key=value", by which a pod asks not to be disrupted; empty if it does not.
func WishOf(pod *corev1.Pod) string {
	for _, w := range wishes {
		if pod.Annotations[w.annotation] == w.value {
			return w.annotation + "=" + w.value
		}
	}
	return ""
}

// Classifier decides what a drain does with a pod, as kubectl's filters do: a drain by Drydock and one by hand agree on every
// pod.
type Classifier struct {
	client kube.Interface
	// daemonSets are those that were looked up, and whether they are there: each is read once per drain.
	daemonSets     map[types.NamespacedName]bool
	Force          bool
	DeleteEmptyDir bool
}

// NewClassifier builds a Classifier with the consents given for bare and for emptyDir pods.
func NewClassifier(client kube.Interface, force, deleteEmptyDir bool) *Classifier {
	return &Classifier{client: client, daemonSets: map[types.NamespacedName]bool{}, Force: force, DeleteEmptyDir: deleteEmptyDir}
}

// Classify decides about one pod, and where it refuses, which consent is missing. An error says that the API server did not
// answer: it is no verdict on the pod.
func (c *Classifier) Classify(ctx context.Context, pod *corev1.Pod) (Verdict, error) {
	if ctx.Err() != nil {
		return Verdict{}, ctx.Err()
	}
	owner := metav1.GetControllerOf(pod)
	orphaned := false
	if !IsFinished(pod) && isDaemonSet(owner) {
		found, err := c.hasDaemonSet(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name})
		if err != nil {
			return Verdict{}, err
		}
		if found {
			return Verdict{Class: Skip, Reason: DaemonSetPod, Message: "belongs to a DaemonSet"}, nil
		}
		orphaned = true
	}
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static && (!orphaned || c.Force) {
		return Verdict{Class: Skip, Reason: StaticPod, Message: "is a static pod of the kubelet"}, nil
	}
	if IsFinished(pod) {
		return Verdict{Class: Evict}, nil
	}
	needsForce := (owner == nil || orphaned) && !c.Force
	needsStorage := HasEmptyDir(pod) && !c.DeleteEmptyDir
	switch {
	case needsForce && needsStorage:
		return Verdict{Class: Refuse, Reason: LocalStorage, Message: consentBoth, NeedsForce: true, NeedsDeleteEmptyDir: true}, nil
	case needsStorage:
		return WithoutStorageConsent, nil
	case needsForce && orphaned:
		return Verdict{Class: Refuse, Reason: OrphanedPod, Message: consentOrphan, NeedsForce: true}, nil
	case needsForce:
		return Verdict{Class: Refuse, Reason: NoController, Message: consentBare, NeedsForce: true}, nil
	default:
		return Verdict{Class: Evict}, nil
	}
}

func isDaemonSet(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

func (c *Classifier) hasDaemonSet(ctx context.Context, name types.NamespacedName) (bool, error) {
	if found, known := c.daemonSets[name]; known {
		return found, nil
	}
	_, err := c.client.AppsV1().DaemonSets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading DaemonSet %s: %w", name, err)
	}
	c.daemonSets[name] = err == nil
	return err == nil, nil
}
