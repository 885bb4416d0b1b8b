package k8s

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s/kube"
)

// Requester is Drydock's name in EvictionRequests, and in the Evictions that a cluster's controller makes of them.
const Requester = "drydock.dev/node-maintenance"

// Keys on an EvictionRequest, by which it is found again.
const (
	requestNodeLabel             = "drydock.dev/node"
	requestRunLabel              = "drydock.dev/maintenance-run"
	requestMaintenanceAnnotation = "drydock.dev/maintenance"
)

// RequestsAPI is the API that EvictionRequests need of the API server.
var RequestsAPI = lifecyclev1alpha1.SchemeGroupVersion.String()

// EvictionRequests are those that one run of a maintenance files (KEP-4563, alpha in Kubernetes 1.37).
type EvictionRequests struct {
	Client     kube.Interface
	Node       string
	WorkflowID string
	RunID      string
}

// rest speaks JSON. The generated client prefers protobuf, which an API server does not accept for a group that is
// served by CustomResourceDefinitions.
func (r EvictionRequests) rest() rest.Interface { return r.Client.LifecycleV1alpha1().RESTClient() }

// Served asks for both kinds once. NotServed reports whether the error means that the API server does not know them.
func (r EvictionRequests) Served(ctx context.Context) error {
	one := &metav1.ListOptions{Limit: 1}
	for resource, list := range map[string]runtime.Object{
		"evictionrequests": &lifecyclev1alpha1.EvictionRequestList{}, "evictions": &lifecyclev1alpha1.EvictionList{},
	} {
		if err := r.rest().Get().Resource(resource).VersionedParams(one, kube.ParameterCodec).Do(ctx).Into(list); err != nil {
			return fmt.Errorf("listing %s: %w", resource, err)
		}
	}
	return nil
}

// Allowed asks whether requests may be filed and withdrawn again. A request that nobody can take back must not be filed.
// Errors: ErrDenied, which names what is not allowed.
func (r EvictionRequests) Allowed(ctx context.Context) error {
	for _, verb := range []string{"create", "patch", "delete"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: lifecyclev1alpha1.GroupName, Resource: "evictionrequests",
			},
		}}
		answer, err := r.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking for the permission to %s evictionrequests: %w", verb, err)
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("%w: it cannot %s evictionrequests in API group %s", ErrDenied, verb, lifecyclev1alpha1.GroupName)
		}
	}
	return nil
}

// NotServed reports whether an API server does not know the kinds; a namespace that is gone is not found either.
func NotServed(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Kind != "namespaces")
}

// Key is that by which the run's requests are found in Sources.Requests.
func (r EvictionRequests) Key() string { return labelValue(r.RunID) }

// Filed reports whether the run filed a request.
func (r EvictionRequests) Filed(request *lifecyclev1alpha1.EvictionRequest) bool {
	return request.Labels[requestRunLabel] == r.Key()
}

func (r EvictionRequests) selector() string {
	return labels.Set{requestRunLabel: r.Key()}.String()
}

// Name is that of the run's request for a pod, so that a retry finds it. Another maintenance of the same node has
// requests of its own: each withdraws no other than its own.
func (r EvictionRequests) Name(pod *corev1.Pod) string {
	return fmt.Sprintf("drydock-%s-%s", strings.ToLower(string(pod.UID)), digest(r.RunID))
}

// File asks for a pod's eviction, unless that was done before. An intent that was withdrawn is declared anew.
func (r EvictionRequests) File(ctx context.Context, pod *corev1.Pod) (*lifecyclev1alpha1.EvictionRequest, error) {
	wanted := &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name(pod), Namespace: pod.Namespace,
			Labels:      map[string]string{requestNodeLabel: labelValue(r.Node), requestRunLabel: labelValue(r.RunID)},
			Annotations: map[string]string{requestMaintenanceAnnotation: r.WorkflowID},
			// The garbage collector removes it after the pod even if no worker lives any more.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target: lifecyclev1alpha1.EvictionRequestTarget{
				Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID},
			},
			Requester: Requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
	filed := &lifecyclev1alpha1.EvictionRequest{}
	err := r.rest().Post().MaxRetries(0).Throttle(nil).Namespace(pod.Namespace).Resource("evictionrequests").Body(wanted).Do(ctx).Into(filed)
	if !apierrors.IsAlreadyExists(err) {
		return filed, err
	}
	filed, err = r.patchIntent(ctx, pod.Namespace, wanted.Name, lifecyclev1alpha1.EvictionRequestIntentEviction)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("EvictionRequest %s was removed just now", wanted.Name)
	case err == nil && filed.DeletionTimestamp != nil:
		return nil, fmt.Errorf("EvictionRequest %s is still being removed", wanted.Name)
	}
	return filed, err
}

// Withdraw takes a request back and removes it. Removal is a withdrawal too, but may wait for finalizers, and the
// intent counts at once.
func (r EvictionRequests) Withdraw(ctx context.Context, namespace, name string) error {
	_, err := r.patchIntent(ctx, namespace, name, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	if err == nil {
		err = r.remove(ctx, namespace, name)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("withdrawing EvictionRequest %s/%s: %w", namespace, name, err)
	}
	return nil
}

// WithdrawAll takes all requests of the run back and removes them. It calls gone with each pod that has no request left; gone may be nil.
func (r EvictionRequests) WithdrawAll(ctx context.Context, gone func(pod types.UID) bool) error {
	var filed lifecyclev1alpha1.EvictionRequestList
	err := r.rest().Get().Resource("evictionrequests").
		VersionedParams(&metav1.ListOptions{LabelSelector: r.selector()}, kube.ParameterCodec).Do(ctx).Into(&filed)
	if NotServed(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing EvictionRequests: %w", err)
	}
	var errs []error
	for _, request := range filed.Items {
		if pod := request.Spec.Target.Pod; pod != nil && gone != nil && gone(pod.UID) {
			if err := r.remove(ctx, request.Namespace, request.Name); err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("removing EvictionRequest %s/%s: %w", request.Namespace, request.Name, err))
			}
			continue
		}
		errs = append(errs, r.Withdraw(ctx, request.Namespace, request.Name))
	}
	return errors.Join(errs...)
}

// WithdrawLeft withdraws what an interrupted drain left behind. A drain lists requests before it files any, so an
// account that may not list has none to withdraw.
func (r EvictionRequests) WithdrawLeft(ctx context.Context) error {
	err := r.Served(ctx)
	if NotServed(err) || err != nil && Denied(ctx, r.Client, err) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.WithdrawAll(ctx, nil)
}

func (r EvictionRequests) patchIntent(ctx context.Context, namespace, name string, intent lifecyclev1alpha1.EvictionRequestIntent) (*lifecyclev1alpha1.EvictionRequest, error) {
	patched := &lifecyclev1alpha1.EvictionRequest{}
	err := r.rest().Patch(mergePatch).MaxRetries(0).Throttle(nil).Namespace(namespace).Resource("evictionrequests").Name(name).
		Body([]byte(fmt.Sprintf(`{"spec":{"intent":%q}}`, intent))).Do(ctx).Into(patched)
	return patched, err
}

func (r EvictionRequests) remove(ctx context.Context, namespace, name string) error {
	return r.rest().Delete().MaxRetries(0).Namespace(namespace).Resource("evictionrequests").Name(name).Do(ctx).Error()
}

// Answer is what the API server's reply to an EvictionRequest means.
func (r EvictionRequests) Answer(ctx context.Context, err error) Eviction {
	return readAnswer(ctx, r.Client, err)
}

// RequestState is what became of an EvictionRequest.
type RequestState struct {
	// Answered: a controller has taken it up.
	Answered bool
	// Evicted: the pod is on its way, or has ended.
	Evicted bool
	// Failed says why nobody goes on with it; empty while somebody does.
	Failed string
	// Message says who acts on it, since when, and what they say of it.
	Message string
	// ExpectedBy is when the responder that acts on it expects to end, if it says so.
	ExpectedBy time.Time
}

// ReadRequest reads what a controller and the responders say of a request; both objects may be nil.
func ReadRequest(request *lifecyclev1alpha1.EvictionRequest, eviction *lifecyclev1alpha1.Eviction) RequestState {
	var s RequestState
	if request != nil {
		s.readConditions(request.Status.Conditions, request.Status.ObservedGeneration, request.Generation)
		s.Answered = s.Answered || request.Status.ObservedGeneration != nil
	}
	// An Eviction that does not count Drydock among its requesters, or not yet again, says nothing of this request.
	if eviction != nil && wantedByUs(eviction) {
		s.Answered = true
		s.readConditions(eviction.Status.Conditions, eviction.Status.ObservedGeneration, eviction.Generation)
		s.readResponder(eviction)
	}
	if s.Message == "" {
		s.Message = "the EvictionRequest is accepted, and there is no Eviction yet"
	}
	return s
}

func wantedByUs(eviction *lifecyclev1alpha1.Eviction) bool {
	for _, r := range eviction.Status.Requesters {
		if r.Name == Requester {
			return r.Intent == lifecyclev1alpha1.RequesterIntentEviction
		}
	}
	return false
}

// readConditions takes over what was said of this generation. A cancellation is about an earlier request: this one is not withdrawn.
func (s *RequestState) readConditions(conditions []metav1.Condition, observed *int64, generation int64) {
	if observed != nil && *observed < generation {
		return
	}
	if c := meta.FindStatusCondition(conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted)); c != nil {
		s.Answered = true
		s.Evicted = s.Evicted || c.Status == metav1.ConditionTrue
		if c.Status == metav1.ConditionFalse && c.Reason == string(lifecyclev1alpha1.EvictionConditionReasonEvictionFailed) && s.Failed == "" {
			s.Failed = reasonOf(c)
		}
	}
	if c := meta.FindStatusCondition(conditions, string(lifecyclev1alpha1.EvictionConditionFailed)); c != nil && c.Status == metav1.ConditionTrue {
		if c.Reason == string(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters) {
			s.Answered, s.Failed = false, ""
			return
		}
		s.Answered, s.Failed = true, reasonOf(c)
	}
}

func reasonOf(c *metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// readResponder reads which responder has its turn and what it reports.
func (s *RequestState) readResponder(eviction *lifecyclev1alpha1.Eviction) {
	s.Message = "no responder is active yet"
	for _, target := range eviction.Status.TargetResponders {
		if target.State != lifecyclev1alpha1.ResponderStateActive {
			continue
		}
		s.Message = target.Name + " is to act on it"
		for _, r := range eviction.Status.Responders {
			if r.Name != target.Name {
				continue
			}
			s.Message = describeResponder(r)
			if !r.ExpectedCompletionTime.IsZero() {
				s.ExpectedBy = r.ExpectedCompletionTime.UTC()
			}
		}
		return
	}
}

func describeResponder(r lifecyclev1alpha1.ResponderStatus) string {
	at := func(prefix string, t *metav1.Time) string {
		if t.IsZero() {
			return ""
		}
		return prefix + t.UTC().Format(time.RFC3339)
	}
	text := r.Name + " acts on it" + at(" since ", r.StartTime) + at(", last heard of at ", r.HeartbeatTime) +
		at(", expects to end at ", r.ExpectedCompletionTime)
	if r.Message != nil && *r.Message != "" {
		text += ": " + *r.Message
	}
	return text
}

// labelValue is a text as a label's value: itself where it may be one, and else a digest of it.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	return "sha256-" + digest(text)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// FiledRequests are the EvictionRequests of one run of a maintenance.
type FiledRequests struct {
	Node, WorkflowID, RunID string
	Count                   int
}

// FiledByAll counts the EvictionRequests of all maintenances, per run. NotServed reports whether the error means that there can be none.
func FiledByAll(ctx context.Context, client kube.Interface) ([]FiledRequests, error) {
	var filed []FiledRequests
	at := map[string]int{}
	err := eachPage(metav1.ListOptions{LabelSelector: requestRunLabel}, func(o metav1.ListOptions) (string, error) {
		var list lifecyclev1alpha1.EvictionRequestList
		err := client.LifecycleV1alpha1().RESTClient().Get().Resource("evictionrequests").
			VersionedParams(&o, kube.ParameterCodec).Do(ctx).Into(&list)
		if err != nil {
			return "", fmt.Errorf("listing EvictionRequests: %w", err)
		}
		for _, r := range list.Items {
			run := r.Labels[requestRunLabel]
			i, known := at[run]
			if !known {
				i = len(filed)
				at[run] = i
				filed = append(filed, FiledRequests{Node: r.Labels[requestNodeLabel], WorkflowID: r.Annotations[requestMaintenanceAnnotation], RunID: run})
			}
			filed[i].Count++
		}
		return list.Continue, nil
	})
	return filed, err
}
