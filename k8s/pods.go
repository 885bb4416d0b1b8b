package k8s

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubectl/pkg/drain"

	"drydock/api"
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

// IsFinished tells whether a pod has run to its end.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ArrivedAt is when a pod came to its node. Intruding tells that it is none of those that belong on a node out of service:
// DaemonSet pods, static pods, what Drydock runs there itself, and what has ended or is about to.
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

// IsOwn tells whether a pod is of a Job of Drydock's own: of a check, a hook or work. Its label alone does not say so: others
// can put that on any pod, but they cannot create pods in those namespaces.
func (s Selection) IsOwn(pod *corev1.Pod) bool {
	return saysOwn(pod) && slices.Contains(s.own, pod.Namespace)
}

// saysOwn tells whether a pod of a Job has the label of those that Drydock runs.
func saysOwn(pod *corev1.Pod) bool {
	_, labelled := pod.Labels[api.WorkflowLabel]
	owner := metav1.GetControllerOf(pod)
	return labelled && owner != nil && owner.Kind == "Job"
}

// Selects tells whether a drain is about this pod.
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
	Unclassified  = "Unclassified"
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

// HasEmptyDir tells whether a pod's end loses the data of an emptyDir volume.
func HasEmptyDir(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// wishes are the annotations by which pods ask not to be disrupted, with the values that do: the cluster autoscaler's
// and karpenter's.
var wishes = []struct{ annotation, value string }{
	{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
	{"karpenter.sh/do-not-disrupt", "true"},
}

// WishOf is the annotation, "key=value", by which a pod asks not to be disrupted; empty where it does not.
func WishOf(pod *corev1.Pod) string {
	for _, w := range wishes {
		if pod.Annotations[w.annotation] == w.value {
			return w.annotation + "=" + w.value
		}
	}
	return ""
}

// Classifier decides what a drain does with a pod. The decision is kubectl's own, so that a drain by Drydock and one
// by hand agree on every pod.
type Classifier struct {
	client     kubernetes.Interface
	daemonSets map[string]bool
	// unread is why the DaemonSet of the pod in question could not be read: kubectl's helper returns only the text.
	unread         error
	Force          bool
	DeleteEmptyDir bool
}

// NewClassifier builds a Classifier with the consents given for bare and for emptyDir pods.
func NewClassifier(client kubernetes.Interface, force, deleteEmptyDir bool) *Classifier {
	return &Classifier{client: client, daemonSets: map[string]bool{}, Force: force, DeleteEmptyDir: deleteEmptyDir}
}

// Classify asks kubectl's filters about one pod, and where they refuse it, which consent is missing. An error says that
// the API server did not answer: it is no verdict on the pod.
func (c *Classifier) Classify(ctx context.Context, pod *corev1.Pod) (Verdict, error) {
	c.unread = nil
	verdict := c.classify(ctx, pod)
	if c.unread != nil {
		return Verdict{}, c.unread
	}
	if ctx.Err() != nil {
		return Verdict{}, ctx.Err()
	}
	return verdict, nil
}

func (c *Classifier) classify(ctx context.Context, pod *corev1.Pod) Verdict {
	evict, warning, err := c.ask(ctx, pod, c.Force, c.DeleteEmptyDir)
	switch {
	case err == nil && evict:
		return Verdict{Class: Evict}
	case err == nil && warning != "":
		return Verdict{Class: Skip, Reason: DaemonSetPod, Message: "belongs to a DaemonSet"}
	case err == nil:
		return Verdict{Class: Skip, Reason: StaticPod, Message: "is a static pod of the kubelet"}
	case c.unread != nil || ctx.Err() != nil:
		return Verdict{} // to ask which consent is missing would ask the API server again
	}
	if forced, _, errForced := c.ask(ctx, pod, true, c.DeleteEmptyDir); errForced == nil && forced {
		if controller := metav1.GetControllerOf(pod); controller != nil {
			return Verdict{Class: Refuse, Reason: OrphanedPod, Message: consentOrphan, NeedsForce: true}
		}
		return Verdict{Class: Refuse, Reason: NoController, Message: consentBare, NeedsForce: true}
	}
	if _, _, errStored := c.ask(ctx, pod, c.Force, true); errStored == nil {
		return WithoutStorageConsent
	}
	if _, _, errBoth := c.ask(ctx, pod, true, true); errBoth == nil {
		return Verdict{Class: Refuse, Reason: LocalStorage, Message: consentBoth, NeedsForce: true, NeedsDeleteEmptyDir: true}
	}
	return Verdict{Class: Refuse, Reason: Unclassified, Message: err.Error()}
}

func (c *Classifier) ask(ctx context.Context, pod *corev1.Pod, force, deleteEmptyDir bool) (evict bool, warning string, err error) {
	helper := drain.Helper{
		Ctx: ctx, Client: onePod{Interface: c.client, pod: pod, classifier: c},
		Force: force, DeleteEmptyDirData: deleteEmptyDir, IgnoreAllDaemonSets: true,
	}
	list, errs := helper.GetPodsForDeletion(pod.Spec.NodeName)
	if len(errs) > 0 {
		_, message, _ := strings.Cut(errs[0].Error(), "cannot delete ")
		return false, "", errors.New(message)
	}
	return len(list.Pods()) == 1, list.Warnings(), nil
}

// onePod is the client that kubectl's helper sees: it lists the one pod in question, from our watch, so that the
// helper's filters can be asked without a request.
type onePod struct {
	kubernetes.Interface
	pod        *corev1.Pod
	classifier *Classifier
}

func (o onePod) CoreV1() coreclient.CoreV1Interface {
	return onePodCore{CoreV1Interface: o.Interface.CoreV1(), pod: o.pod}
}

func (o onePod) AppsV1() appsclient.AppsV1Interface {
	return rememberedApps{AppsV1Interface: o.Interface.AppsV1(), classifier: o.classifier}
}

type onePodCore struct {
	coreclient.CoreV1Interface
	pod *corev1.Pod
}

func (o onePodCore) Pods(namespace string) coreclient.PodInterface {
	return onePodList{PodInterface: o.CoreV1Interface.Pods(namespace), pod: o.pod}
}

type onePodList struct {
	coreclient.PodInterface
	pod *corev1.Pod
}

func (o onePodList) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{Items: []corev1.Pod{*o.pod}}, nil
}
