package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

func (e *evictionRequests) refused() error {
	if e.requests == nil {
		return nil
	}
	return errors.Join(e.requests.Err(), e.evictions.Err())
}

// takenBack reports whether a request that was filed is there no more, or is withdrawn, and not by Drydock.
func (e *evictionRequests) takenBack(f *filedRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	request := e.known(f.pod)
	return !f.since.IsZero() && (f.deleted || request != nil && request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
}

// known is the request for a pod as the watch has it, nil if there is none.
func (e *evictionRequests) known(pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	if e.requests == nil {
		return nil
	}
	request, _ := e.requests.Get(pod.Namespace + "/" + e.api.Name(pod))
	return request
}

// there reports whether the very same pod is on the node and not on its way out.
func (e *evictionRequests) there(pod *corev1.Pod) bool {
	now, ok := e.node.Pods.Get(k8s.PodName(pod))
	return ok && now.UID == pod.UID && now.DeletionTimestamp == nil
}

// departed are the pods that left after their request was filed, each of them once.
func (e *evictionRequests) departed() []*corev1.Pod {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var pods []*corev1.Pod
	for _, f := range e.filed {
		if !f.left && f.direct == "" && !f.since.IsZero() && !e.there(f.pod) {
			f.left = true
			pods = append(pods, f.pod)
		}
	}
	return pods
}

// deadline is when a pod's request has waited too long although nothing changed; zero if it cannot.
func (e *evictionRequests) deadline(pod *corev1.Pod) time.Time {
	if e == nil {
		return time.Time{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.filed[pod.UID]
	if f == nil || f.since.IsZero() || f.answered || f.left || f.direct != "" {
		return time.Time{}
	}
	return f.deadline()
}

// changes is the channel changed, nil if no request is ever filed.
func (e *evictionRequests) changes() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.changed
}

// explain adds to what keeps a pod that it is evicted directly, and why.
func (e *evictionRequests) explain(pod *corev1.Pod, message string) string {
	if e == nil {
		return message
	}
	if f, _ := e.of(pod); f.direct != "" {
		return message + " (evicted directly: " + f.direct + ")"
	}
	return message
}

// count adds to a progress how many pods were not left to a responder.
func (e *evictionRequests) count(p api.DrainProgress) api.DrainProgress {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		p.Direct, p.DirectWhy = e.direct, e.directWhy
	}
	return p
}

// follow passes on the changes that concern this drain, for as long as ctx lives: the Evictions of all other nodes
// change too.
func (e *evictionRequests) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.requests.Changed:
		case <-e.evictions.Changed:
		}
		if e.refresh() {
			select {
			case e.changed <- struct{}{}:
			default:
			}
		}
	}
}

// refresh reports whether anything is new to this drain.
func (e *evictionRequests) refresh() (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed = e.refused() != nil
	for _, f := range e.filed {
		seen := fmt.Sprint(f.deleted)
		if request := e.known(f.pod); request != nil {
			seen += "/" + request.ResourceVersion
		}
		if eviction := e.evictionOf(f.pod); eviction != nil {
			seen += "/" + eviction.ResourceVersion
		}
		if seen != f.seen {
			f.seen, changed = seen, true
		}
	}
	return changed
}

// isMine reports whether a request is one of this drain's. It notes when one was removed, also by Drydock:
// the drain does not wait for such a request.
func (e *evictionRequests) isMine(request *lifecyclev1alpha1.EvictionRequest, gone bool) bool {
	if !e.api.Filed(request) {
		return false
	}
	if target := request.Spec.Target.Pod; gone && target != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if f := e.filed[target.UID]; f != nil {
			f.deleted = true
		}
	}
	return true
}

// concernsMine reports whether an Eviction is of a pod for which this drain filed a request.
func (e *evictionRequests) concernsMine(eviction *lifecyclev1alpha1.Eviction, _ bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	target := eviction.Spec.Target.Pod
	return target != nil && e.filed[target.UID] != nil
}

// evictionOf is the Eviction of a pod, nil if there is none.
func (e *evictionRequests) evictionOf(pod *corev1.Pod) *lifecyclev1alpha1.Eviction {
	if e.evictions == nil {
		return nil
	}
	if found := e.evictions.By(string(pod.UID)); len(found) > 0 {
		return found[0]
	}
	return nil
}

// withdraw takes back and removes what is left of the run's requests, at the end of its drain.
func (e *evictionRequests) withdraw(ctx context.Context) error {
	if e == nil || e.requests == nil {
		return nil
	}
	still := map[types.UID]bool{}
	for _, pod := range e.node.Pods.List() {
		still[pod.UID] = true
	}
	return e.api.WithdrawAll(ctx, func(pod types.UID) bool { return !still[pod] })
}

// withdrawUnwanted withdraws the requests that an earlier drain of the same run filed for pods that are to stay now:
// those that were skipped since, or are no longer selected.
func (e *evictionRequests) withdrawUnwanted(ctx context.Context, stays func(context.Context, *corev1.Pod) (bool, error)) error {
	if e.requests == nil {
		return nil
	}
	pods := map[types.UID]*corev1.Pod{}
	for _, pod := range e.node.PodsByName() {
		pods[pod.UID] = pod
	}
	for _, request := range e.requests.By(e.api.Key()) {
		if request.Spec.Target.Pod == nil || pods[request.Spec.Target.Pod.UID] == nil {
			continue
		}
		left, err := stays(ctx, pods[request.Spec.Target.Pod.UID])
		if err == nil && left {
			err = e.api.Withdraw(ctx, request.Namespace, request.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
