package drain

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

// means are the means by which a drain may end a pod now, as its input and the escalation want it.
type means struct {
	drain  spec.Drain
	force  string
	killAt *time.Time
	began  time.Time
	// endsStuck: pods that do not end in their time are given none any more.
	endsStuck bool
}

func meansOf(in Input) means {
	return means{drain: in.Drain, force: in.Force, killAt: in.KillAt, began: in.Began, endsStuck: in.EndsStuck}
}

// How a pod was made to end.
const (
	evicted = "evicted"
	deleted = "deleted"
	killed  = "killed"
)

func (m means) how(t target) string {
	switch {
	case m.kills(t.Pod):
		return killed
	case m.deletes(t):
		return deleted
	default:
		return evicted
	}
}

// kills reports whether a pod is given no time to end.
func (m means) kills(pod *corev1.Pod) bool { return m.force == spec.Kill || m.isStuck(pod) }

// isStuck reports whether a pod is terminating for longer than twice the time it was given, and is not waited for
// (maintenance-controller, forceEviction): its deletion timestamp is when that was over once.
func (m means) isStuck(pod *corev1.Pod) bool {
	if !m.endsStuck || pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return false
	}
	return time.Now().After(pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second))
}

// deletes reports whether a pod is deleted by now and not evicted, so that no budget is asked.
func (m means) deletes(t target) bool {
	return m.force != "" || t.podType == drainplan.DaemonSet || m.mustBeDeletedNow(t.Pod)
}

// end asks for a pod's end, in the way its type and the escalation want it.
func (m means) end(ctx context.Context, client kube.Interface, t target) k8s.Eviction {
	grace := m.drain.GracePeriodSeconds
	switch {
	case m.kills(t.Pod):
		return k8s.DeletePod(ctx, client, t.Pod, new(int64))
	case m.force == spec.BypassBudget, t.podType == drainplan.DaemonSet, m.mustBeDeletedNow(t.Pod):
		return k8s.DeletePod(ctx, client, t.Pod, grace)
	default:
		return k8s.EvictPod(ctx, client, t.Pod, grace)
	}
}

// mustBeDeletedNow reports whether a pod needs all the time that is left until the rung Kill to end by itself.
func (m means) mustBeDeletedNow(pod *corev1.Pod) bool {
	return m.killAt != nil && !time.Now().Before(m.killAt.Add(-m.graceOf(pod)))
}

func (m means) graceOf(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if own := m.drain.GracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}

// isProtected reports whether a pod's wish not to be disrupted is respected, which has a deadline and ends with the
// escalation.
func (m means) isProtected(pod *corev1.Pod) bool {
	return k8s.WishOf(pod) != "" && !k8s.IsFinished(pod) && m.force == "" && !m.mustBeDeletedNow(pod) &&
		time.Now().Before(m.protectedUntil())
}

func (m means) protectedUntil() time.Time { return m.began.Add(m.drain.ProtectedFor.Std()) }

// considerKill takes into account when a pod has to be deleted early enough to end in its own time.
func (m means) considerKill(pod *corev1.Pod, consider func(time.Time)) {
	if m.killAt != nil {
		consider(m.killAt.Add(-m.graceOf(pod)))
	}
}
