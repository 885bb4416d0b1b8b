package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/lab/world"
)

// drainUnderBudget drains four pods of which a budget lets one be missing: by Drydock, by a bare loop that is as fast
// as can be, and by kubectl.
func (b *bench) drainUnderBudget(ctx context.Context) []Figure {
	world.Say("drains of 4 pods under a budget of maxUnavailable 1, %d of each kind", b.sizes.budgetRounds)
	s := &shuttle{bench: b, name: "budget", pods: 4, budget: true}
	defer func() { b.note(s.end(ctx)) }()
	s.launch(ctx)
	times := s.rounds(ctx, b.sizes.budgetRounds, []drainer{
		{"Drydock", s.drydock}, {"bare loop", s.bareLoop}, {"kubectl", s.byKubectl},
	})
	drydock, bare, kubectl := median(times[0]), median(times[1]), median(times[2])
	return []Figure{
		report("budget drain, Drydock, median", drydock, "s"),
		report("budget drain, bare loop, median", bare, "s"),
		report("budget drain, kubectl, median", kubectl, "s"),
		atMost("budget drain, Drydock / bare loop", drydock/bare, "ratio", 1.3),
		atMost("budget drain, Drydock / kubectl", drydock/kubectl, "ratio", 0.5),
	}
}

// bareLoop is what a drain cannot be faster than: it watches the pods and their budget, and evicts at the moment the
// budget allows it. As with Drydock, the clock starts before it looks at anything, the node being cordoned.
func (s *shuttle) bareLoop(ctx context.Context, node string) time.Duration {
	noError(s.cordon(ctx, node, true))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	// A watch without a resource version begins with what is there.
	pods := must(s.plain.CoreV1().Pods(s.name).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}))
	defer pods.Stop()
	budgets := must(s.plain.PolicyV1().RESTClient().Get().Namespace(s.name).Resource("poddisruptionbudgets").
		VersionedParams(&metav1.ListOptions{Watch: true}, kube.ParameterCodec).Watch(ctx))
	defer budgets.Stop()
	here, allowed := map[types.UID]*corev1.Pod{}, int32(0)
	for seen := false; !seen || len(here) > 0; {
		select {
		case event := <-pods.ResultChan():
			pod := must(of[*corev1.Pod](ctx, event))
			seen = true
			if event.Type == watch.Deleted {
				delete(here, pod.UID)
			} else {
				here[pod.UID] = pod
			}
		case event := <-budgets.ResultChan():
			allowed = must(of[*policyv1.PodDisruptionBudget](ctx, event)).Status.DisruptionsAllowed
		}
		for _, pod := range here {
			if allowed <= 0 || pod.DeletionTimestamp != nil {
				continue
			}
			switch eviction := k8s.EvictPod(ctx, s.plain, pod, nil); eviction.Answer {
			case k8s.Accepted:
				allowed--
				going := pod.DeepCopy()
				going.DeletionTimestamp = new(metav1.Now())
				here[pod.UID] = going
			case k8s.BudgetRefused:
				allowed = 0 // until the budget says otherwise
			default:
				noError(fmt.Errorf("evicting pod %s: %s %s", pod.Name, eviction.Answer, eviction.Message))
			}
		}
	}
	return time.Since(began)
}

// of is the object of a watch's event.
func of[T runtime.Object](ctx context.Context, event watch.Event) (T, error) {
	object, ok := event.Object.(T)
	switch {
	case ok:
		return object, nil
	case ctx.Err() != nil:
		return object, ctx.Err()
	case event.Type == watch.Error:
		return object, fmt.Errorf("watching: %w", apierrors.FromObject(event.Object))
	}
	return object, errors.New("a watch ended")
}
