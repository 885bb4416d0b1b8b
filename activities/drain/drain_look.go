package drain

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock/activities/reporting"
	"drydock/api"
	"drydock/k8s"
	"drydock/rules/drainplan"
	"drydock/rules/spec"
)

// round is what one look at the node found.
type round struct {
	// targets may be acted upon now: their tier is reached and nobody has to consent first.
	targets []target
	refused []refusedPod
	leaving []*corev1.Pod
	// killable are those of the leaving that would be targets otherwise.
	killable []target
	// awaited are static pods that somebody has to take off the node.
	awaited  []*corev1.Pod
	progress api.DrainProgress
}

// target is a pod to act upon.
type target struct {
	*corev1.Pod
	podType drainplan.PodType
}

type refusedPod struct {
	pod     *corev1.Pod
	verdict k8s.Verdict
}

// placed is a pod that the drain is about, with its tier.
type placed struct {
	target
	tier    int
	verdict k8s.Verdict
}

// look sorts the pods on the node: those to act upon, those that lack consent, those on their way out. Finished pods
// are evicted too but never keep the node from being drained.
func (r *drainRun) look(ctx context.Context) (round, error) {
	found := round{progress: api.DrainProgress{At: time.Now()}}
	if err := r.noteDeparted(ctx); err != nil {
		return found, err
	}
	remaining := make([]int, r.plan.Len())
	var pods []placed
	for _, pod := range r.node.PodsByName() {
		p, stays, err := r.place(ctx, pod)
		if err != nil {
			return found, err
		}
		if stays != nil {
			found.progress.Skipped++
			if stays.Reason != "" && len(found.progress.Stays) < reporting.MaxBlockers {
				found.progress.Stays = append(found.progress.Stays, *stays)
			}
			continue
		}
		if !r.seen[pod.UID] {
			r.seen[pod.UID] = true
			r.back.notice(pod)
		}
		if !k8s.IsFinished(pod) && !r.ignored(pod) {
			remaining[p.tier]++
			found.progress.Remaining++
		}
		pods = append(pods, p)
	}
	r.reached = min(r.plan.Next(r.reached, remaining), r.plan.Len()-1)
	for _, p := range pods {
		r.sort(p, &found)
	}
	found.progress.Total = len(r.seen)
	found.progress.Terminating = len(found.leaving)
	found.progress.Evicted = r.evicted
	found.progress.Pods, found.progress.MorePods = slices.Clone(r.ended), r.moreEnded
	if r.in.Drain.Plan != nil {
		found.progress.Tier, found.progress.Tiers = r.reached+1, r.plan.Len()
		found.progress.Targets = r.plan.Targets(r.reached)
	}
	return found, nil
}

// place finds a pod's tier; a pod that stays on the node has none. A Blocker with a reason says why a pod stays that
// the plan is about.
func (r *drainRun) place(ctx context.Context, pod *corev1.Pod) (placed, *api.Blocker, error) {
	p := placed{target: target{Pod: pod, podType: drainplan.Default}}
	if !r.choose.Selects(pod) || slices.Contains(r.in.Skip, k8s.PodName(pod)) {
		return p, &api.Blocker{}, nil
	}
	var err error
	if p.verdict, err = r.verdict(ctx, pod); err != nil {
		return p, nil, err
	}
	if p.verdict.Class == k8s.Skip {
		p.podType = podTypeOf(p.verdict)
	}
	tier, ok := r.plan.TierOf(drainplan.Pod{Type: p.podType, Priority: priority(pod), Labels: pod.Labels})
	if !ok {
		return p, &api.Blocker{}, nil
	}
	p.tier = tier
	stays := func(reason, message string) *api.Blocker {
		return &api.Blocker{Pod: k8s.PodName(pod), Reason: reason, Message: message, Owner: k8s.OwnerOf(pod), Since: pod.CreationTimestamp.Time}
	}
	switch {
	case p.podType == drainplan.Static && !r.in.Drain.WaitsForStatic():
		return p, stays(k8s.StaticPod, "is a static pod of the kubelet, which nobody can evict: it stays"), nil
	case p.podType == drainplan.DaemonSet && k8s.ToleratesMaintenance(pod):
		return p, stays("ToleratesTaint", "its DaemonSet tolerates every taint and would put it back at once: it stays"), nil
	}
	return p, nil, nil
}

// verdict asks kubectl's filters once about each version of a pod.
func (r *drainRun) verdict(ctx context.Context, pod *corev1.Pod) (k8s.Verdict, error) {
	if known, ok := r.verdicts[pod.UID]; ok && known.version == pod.ResourceVersion {
		return known.Verdict, nil
	}
	v, err := r.classify.Classify(ctx, pod)
	if err == nil {
		r.verdicts[pod.UID] = knownVerdict{Verdict: v, version: pod.ResourceVersion}
	}
	return v, err
}

type knownVerdict struct {
	k8s.Verdict
	version string
}

func podTypeOf(v k8s.Verdict) drainplan.PodType {
	if v.Reason == k8s.StaticPod {
		return drainplan.Static
	}
	return drainplan.DaemonSet
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// sort decides what is done with a pod of the tiers reached so far; the later ones wait for their turn.
func (r *drainRun) sort(p placed, found *round) {
	leaving := p.DeletionTimestamp != nil
	if leaving {
		found.leaving = append(found.leaving, p.Pod)
	}
	refusal, refused := r.refusalOf(p)
	switch {
	case p.tier > r.reached:
	case p.podType == drainplan.Static:
		if !leaving {
			found.awaited = append(found.awaited, p.Pod)
		}
	case refused:
		if !leaving {
			found.refused = append(found.refused, refusedPod{p.Pod, refusal})
		}
	case leaving:
		found.killable = append(found.killable, p.target)
	default:
		found.targets = append(found.targets, p.target)
	}
}

// refusalOf says what a pod lacks to be acted upon.
func (r *drainRun) refusalOf(p placed) (refusal k8s.Verdict, refused bool) {
	switch {
	case p.verdict.Class == k8s.Refuse:
		return p.verdict, true
	case p.podType == drainplan.DaemonSet && !r.in.Drain.DeleteEmptyDir && k8s.HasEmptyDir(p.Pod):
		return k8s.WithoutStorageConsent, true
	case r.isProtected(p.Pod):
		return k8s.Verdict{Class: k8s.Refuse, Reason: "DoNotDisrupt",
			Message: fmt.Sprintf("asks not to be disrupted (%s): it is left alone until %s (protectedFor %s)", k8s.WishOf(p.Pod),
				r.protectedUntil().UTC().Format(time.RFC3339), r.in.Drain.ProtectedFor)}, true
	default:
		return k8s.Verdict{}, false
	}
}

// isProtected tells whether a pod's wish not to be disrupted is respected, which has a deadline and ends with the
// escalation.
func (r *drainRun) isProtected(pod *corev1.Pod) bool {
	return k8s.WishOf(pod) != "" && !k8s.IsFinished(pod) && r.in.Force == "" && !r.mustBeDeletedNow(pod) &&
		time.Now().Before(r.protectedUntil())
}

func (r *drainRun) protectedUntil() time.Time { return r.in.Began.Add(r.in.Drain.ProtectedFor.Std()) }

// mustBeDeletedNow tells that a pod needs all the time that is left until the rung Kill to end by itself.
func (r *drainRun) mustBeDeletedNow(pod *corev1.Pod) bool {
	return r.in.KillAt != nil && !time.Now().Before(r.in.KillAt.Add(-r.graceOf(pod)))
}

func (r *drainRun) graceOf(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if own := r.in.Drain.GracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}

// ignored tells whether a pod that cannot end does not count: its time is over, its node's kubelet does not answer, and
// the maintenance was told not to wait for that.
func (r *drainRun) ignored(pod *corev1.Pod) bool {
	return r.in.Drain.OnNodeNotReady == spec.IgnoreStuck && pod.DeletionTimestamp != nil &&
		time.Now().After(pod.DeletionTimestamp.Time) && !r.node.Ready()
}
