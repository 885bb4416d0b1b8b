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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// Answer is what the API server's reply to an eviction means.
type Answer string

// The answers. Only MissingPermission can never heal by itself.
const (
	// Accepted: the pod is going. PodGone: it was gone already. PodChanged: the name now belongs to another pod, or
	// the pod changed under the eviction.
	Accepted   Answer = "Accepted"
	PodGone    Answer = "PodGone"
	PodChanged Answer = "PodChanged"
	// BudgetRefused: a PodDisruptionBudget does not allow it now. SeveralBudgets: more than one covers the pod, which
	// the API server does not support.
	BudgetRefused  Answer = api.ReasonDisruptionBudget
	SeveralBudgets Answer = api.ReasonSeveralBudgets
	// Throttled: the API server asks every client to slow down. WebhookRefused: an admission webhook said no, which
	// may mean that it has begun to move the pod.
	Throttled      Answer = "Throttled"
	WebhookRefused Answer = "Webhook"
	// Requested: an EvictionRequest is filed, and no responder of the pod has ended it yet.
	Requested Answer = api.ReasonEvictionRequested
	// NamespaceGoing: the namespace is being deleted, and the pod with it.
	NamespaceGoing    Answer = "NamespaceTerminating"
	MissingPermission Answer = "MissingPermission"
	// Failed is any other error, to be tried again.
	Failed Answer = "Error"
)

// Eviction is the outcome of one request to evict a pod.
type Eviction struct {
	Answer Answer
	// Budget is the budget that refused, where the API server names one.
	Budget  string
	Message string
	// RetryAfter is how long the API server asks to wait; 0 where it does not say.
	RetryAfter time.Duration
	// ExpectedBy is when the responder of an EvictionRequest expects to end, if it says so.
	ExpectedBy time.Time
	Err        error
}

var budgetName = regexp.MustCompile(`disruption budget (\S+) `)

// Queue waits for the client's turn among all requests of the process. EvictPod, DeletePod and EvictionRequests.File do
// not wait by themselves: what their caller checks after Queue still holds when the request is sent.
func Queue(ctx context.Context, client kube.Interface) error {
	if limiter := client.CoreV1().RESTClient().GetRateLimiter(); limiter != nil {
		return limiter.Wait(ctx)
	}
	return nil
}

// IsGone reads a pod past every cache, and reports whether its name is free or belongs to another pod. It lists, because the account that
// drains may do that anyway.
func IsGone(ctx context.Context, client kube.Interface, pod *corev1.Pod) (bool, error) {
	found, err := client.CoreV1().Pods(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
	})
	if err != nil {
		return false, fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return !slices.ContainsFunc(found.Items, func(p corev1.Pod) bool { return p.UID == pod.UID }), nil
}

const (
	// endWithin is how long a request to end a pod may take: longer than an admission webhook may (30 s).
	endWithin = 34 * time.Second
	// longestRetryAfter bounds the wait that the API server, or a proxy before it, may demand.
	longestRetryAfter = 30 * time.Second
)

// EvictPod posts one eviction, with the pod's UID as its precondition. It never repeats the request: client-go would
// obey a Retry-After silently ten times over, and nobody would see what it waits for.
func EvictPod(ctx context.Context, client kube.Interface, pod *corev1.Pod, gracePeriodSeconds *int64) Eviction {
	body := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: gracePeriodSeconds,
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		},
	}
	return ask(ctx, client, client.CoreV1().RESTClient().Post().MaxRetries(0).Throttle(nil).
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").Body(body))
}

// DeletePod deletes one pod with its UID as the precondition, whatever the budgets say: only the escalation, and a tier
// of DaemonSet pods, do that. A nil grace period is the pod's own.
func DeletePod(ctx context.Context, client kube.Interface, pod *corev1.Pod, gracePeriodSeconds *int64) Eviction {
	return ask(ctx, client, client.CoreV1().RESTClient().Delete().MaxRetries(0).Throttle(nil).
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		Body(&metav1.DeleteOptions{
			GracePeriodSeconds: gracePeriodSeconds,
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		}))
}

// ask sends a request to end a pod, and gives it up where no answer comes.
func ask(ctx context.Context, client kube.Interface, request *rest.Request) Eviction {
	asked, cancel := context.WithTimeoutCause(ctx, endWithin, fmt.Errorf("no answer within %s", endWithin))
	defer cancel()
	err := request.Do(asked).Error()
	if errors.Is(err, context.DeadlineExceeded) && asked.Err() != nil {
		err = context.Cause(asked)
	}
	return readAnswer(ctx, client, err)
}

func readAnswer(ctx context.Context, client kube.Interface, err error) Eviction {
	if err == nil {
		return Eviction{Answer: Accepted}
	}
	e := Eviction{Answer: Failed, Message: err.Error(), Err: err}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		e.RetryAfter = min(time.Duration(seconds)*time.Second, longestRetryAfter)
	}
	switch {
	case apierrors.IsNotFound(err):
		e.Answer = PodGone
	case apierrors.IsConflict(err):
		e.Answer = PodChanged
	case apierrors.IsTooManyRequests(err):
		e.readTooManyRequests(err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.Answer = NamespaceGoing
	case fromWebhook(err):
		e.Answer = WebhookRefused
	case aboutBudget(err):
		e.Answer = BudgetRefused
		e.Budget = budgetOf(err)
	case Denied(ctx, client, err):
		e.Answer, e.Err = MissingPermission, fmt.Errorf("%w: %w", ErrDenied, err)
	case strings.Contains(err.Error(), "more than one PodDisruptionBudget"):
		e.Answer = SeveralBudgets
	}
	return e
}

func (e *Eviction) readTooManyRequests(err error) {
	var status apierrors.APIStatus
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && errors.As(err, &status) {
		e.Answer = BudgetRefused
		e.Message = cause.Message
		if name := budgetName.FindStringSubmatch(cause.Message); name != nil {
			e.Budget = name[1]
		}
		return
	}
	e.Answer = Throttled
	if fromWebhook(err) {
		e.Answer = WebhookRefused
	}
}

// aboutBudget reports whether the API server refuses to work with a budget, because too many of its evictions are under way
// or its status makes no sense.
func aboutBudget(err error) bool { return apierrors.IsForbidden(err) && budgetOf(err) != "" }

func budgetOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && strings.HasPrefix(status.Status().Details.Kind, "poddisruptionbudget") {
		return status.Status().Details.Name
	}
	return ""
}

func fromWebhook(err error) bool { return strings.Contains(err.Error(), "admission webhook") }
