package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/k8s"
)

// answerWithin is how long a controller has to take an EvictionRequest up, and how soon one that somebody took back is
// filed again.
const answerWithin = 30 * time.Second

// fileWithin bounds the filing of one EvictionRequest.
const fileWithin = 10 * time.Second

// evictionRequests leaves evictions to the responders of pods: it files an EvictionRequest for each pod and follows
// what becomes of it. A nil one leaves every pod to be evicted directly.
type evictionRequests struct {
	api       k8s.EvictionRequests
	node      *heldnode.View
	limiter   *Limiter
	requests  *k8s.SharedView[*lifecyclev1alpha1.EvictionRequest]
	evictions *k8s.SharedView[*lifecyclev1alpha1.Eviction]
	// changed receives a token after any change of a request of this drain, or of an Eviction that belongs to one.
	changed chan struct{}

	mu    sync.Mutex
	filed map[types.UID]*filedRequest
	// answered: some controller has taken a request up. absent says why nobody ever will.
	answered bool
	absent   string
	// direct counts the pods that are evicted directly, and why the last of them is.
	direct    int
	directWhy string
}

// filedRequest is the request for one pod.
type filedRequest struct {
	pod *corev1.Pod
	// since is from when an answer is waited for; zero before the request is filed.
	since    time.Time
	answered bool
	// deleted: it is gone, and Drydock did not remove it.
	deleted bool
	// direct says why the pod is evicted directly; empty while it is not.
	direct string
	// left: departed has reported the pod.
	left bool
	// seen are the versions of the objects when they last changed.
	seen string
}

// newEvictionRequests looks whether the API server knows EvictionRequests and begins to follow them. It fails
// if a permission is missing, or for a moment: then a retry helps.
func (d *Activities) newEvictionRequests(ctx context.Context, node *heldnode.View) (*evictionRequests, error) {
	e := &evictionRequests{
		api:  k8s.EvictionRequests{Client: d.Client, Node: node.Name, WorkflowID: node.WorkflowID, RunID: node.RunID},
		node: node, limiter: d.Limiter, changed: make(chan struct{}, 1), filed: map[types.UID]*filedRequest{},
	}
	err := e.api.Served(ctx)
	if k8s.NotServed(err) {
		e.absent = notServed
		return e, nil
	}
	if err == nil {
		err = e.api.Allowed(ctx)
	}
	if err != nil {
		return nil, err
	}
	if e.requests, err = d.Sources.Requests.Follow(ctx, e.isMine); err != nil {
		return nil, err
	}
	if e.evictions, err = d.Sources.Evictions.Follow(ctx, e.concernsMine); err != nil {
		return nil, err
	}
	// Who may not list requests has filed none: the end of a maintenance relies on that.
	if err := errors.Join(e.requests.Synced(ctx), e.evictions.Synced(ctx)); err != nil {
		return nil, err
	}
	e.refresh()
	go e.follow(ctx)
	return e, nil
}

var (
	notServed = "the API server does not serve " + k8s.RequestsAPI
	noAnswer  = fmt.Sprintf("no controller answered the EvictionRequest within %s", answerWithin)
)

// request files an EvictionRequest for a pod, or looks at what became of it. UseEviction is true if nobody is there
// to answer it: then the pod is to be evicted directly, and the message says why.
func (e *evictionRequests) request(ctx context.Context, pod *corev1.Pod) (answer k8s.Eviction, useEviction bool) {
	if e == nil {
		return k8s.Eviction{}, true
	}
	if k8s.IsFinished(pod) {
		return k8s.Eviction{}, true // it has ended, which is all that a responder could bring about
	}
	f, absent := e.of(pod)
	if f.direct != "" {
		return k8s.Eviction{Message: f.direct}, true
	}
	if err := e.refused(); err != nil {
		return k8s.Eviction{Answer: k8s.MissingPermission, Message: err.Error(), Err: err}, false
	}
	switch takenBack := e.takenBack(f); {
	case f.since.IsZero() && absent != "" && e.known(pod) == nil:
		return e.evictDirectly(ctx, f, absent)
	case takenBack && time.Now().Before(f.deadline()):
		return requested("somebody took the EvictionRequest back; it is filed again at " + f.deadline().UTC().Format(time.RFC3339)), false
	case takenBack, f.since.IsZero():
		if answer := e.file(ctx, f); answer.Answer != "" || f.direct != "" {
			return answer, f.direct != ""
		}
	}
	return e.standing(ctx, f)
}

// of finds the request for a pod.
func (e *evictionRequests) of(pod *corev1.Pod) (f *filedRequest, absent string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f = e.filed[pod.UID]
	if f == nil {
		f = &filedRequest{pod: pod}
		e.filed[pod.UID] = f
	}
	return f, e.absent
}

// file sends the request, unless there is one already, or the node or the pod is not what it was. Its answer is empty
// where there is something to follow then, or where the pod is to be evicted directly.
func (e *evictionRequests) file(ctx context.Context, f *filedRequest) (answer k8s.Eviction) {
	// An earlier attempt filed it: the controller had since then to answer.
	if before := e.known(f.pod); before != nil && f.since.IsZero() && before.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction {
		f.since = before.CreationTimestamp.Time
		return k8s.Eviction{}
	}
	if err := e.limiter.Wait(ctx); err != nil {
		return e.api.Answer(ctx, err)
	}
	if err := k8s.Queue(ctx, e.api.Client); err != nil {
		return e.api.Answer(ctx, err)
	}
	// The waits may have been long: look again just before the request.
	if err := e.node.Fence(); err != nil {
		return e.api.Answer(ctx, err)
	}
	if !e.there(f.pod) {
		return k8s.Eviction{Answer: k8s.PodGone}
	}
	// A request that was given up half-way could be filed after all others were withdrawn.
	filing, cancel := context.WithTimeout(context.WithoutCancel(ctx), fileWithin)
	defer cancel()
	_, err := e.api.File(filing, f.pod)
	switch {
	case err == nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		f.since, f.deleted, f.answered = time.Now(), false, false
		return k8s.Eviction{}
	case k8s.NotServed(err):
		e.mu.Lock()
		e.absent = notServed
		e.mu.Unlock()
		answer, _ = e.evictDirectly(ctx, f, notServed)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		answer, _ = e.evictDirectly(ctx, f, "the API server does not accept the EvictionRequest: "+err.Error())
	default:
		answer = e.api.Answer(ctx, err)
	}
	return answer
}

// standing returns how a filed request stands.
func (e *evictionRequests) standing(ctx context.Context, f *filedRequest) (answer k8s.Eviction, useEviction bool) {
	e.mu.Lock()
	state := k8s.ReadRequest(e.known(f.pod), e.evictionOf(f.pod))
	f.answered = state.Answered
	e.answered = e.answered || state.Answered
	late := !state.Answered && !time.Now().Before(f.deadline())
	if late && !e.answered {
		e.absent = noAnswer
	}
	e.mu.Unlock()
	switch {
	case state.Evicted:
		return k8s.Eviction{Answer: k8s.Accepted, Message: state.Message}, false
	case state.Failed != "":
		return e.evictDirectly(ctx, f, "the EvictionRequest failed, "+state.Failed)
	case state.Answered:
		return k8s.Eviction{Answer: k8s.Requested, Message: state.Message, ExpectedBy: state.ExpectedBy}, false
	case late:
		return e.evictDirectly(ctx, f, noAnswer)
	default:
		return requested("an EvictionRequest is filed, and no controller has answered yet: the pod is evicted directly at " +
			f.deadline().UTC().Format(time.RFC3339)), false
	}
}

func (f *filedRequest) deadline() time.Time { return f.since.Add(answerWithin) }

func requested(message string) k8s.Eviction {
	return k8s.Eviction{Answer: k8s.Requested, Message: message}
}

// evictDirectly gives the request for a pod up. It is withdrawn first: two who evict the same pod would spend the
// budget twice.
func (e *evictionRequests) evictDirectly(ctx context.Context, f *filedRequest, why string) (answer k8s.Eviction, useEviction bool) {
	if !f.since.IsZero() || e.known(f.pod) != nil {
		if err := e.api.Withdraw(ctx, f.pod.Namespace, e.api.Name(f.pod)); err != nil {
			return e.api.Answer(ctx, err), false
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f.direct = why
	e.direct, e.directWhy = e.direct+1, why
	return k8s.Eviction{Message: why}, true
}
