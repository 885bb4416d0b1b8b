package drain

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

// observation is what one look at the node found.
type observation struct {
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

// observer sorts what is on a node into the tiers of a drain.
type observer struct {
	drain    spec.Drain
	skip     []string
	means    means
	node     *heldnode.View
	choose   k8s.Selection
	classify *k8s.Classifier
	consents consents
	plan     drainplan.Plan
	// worker is the pod that drains.
	worker types.UID
	// reached is the tier that is drained; it never goes back.
	reached  int
	seen     map[types.UID]bool
	verdicts map[types.UID]knownVerdict
}

// observe sorts the pods on the node: those to act upon, those that lack consent, those on their way out. Finished pods
// are evicted too but never keep the node from being drained. It calls arrived for each pod that it sees for the first time.
func (o *observer) observe(ctx context.Context, arrived func(*corev1.Pod)) (observation, error) {
	found := observation{progress: api.DrainProgress{At: time.Now(), Staying: map[string]int{}}}
	remaining := make([]int, o.plan.Len())
	var pods []placed
	for _, pod := range o.node.PodsByName() {
		p, stays, err := o.place(ctx, pod)
		if err != nil {
			return found, err
		}
		if stays != nil {
			found.progress.Skipped++
			found.progress.Staying[o.whyStays(pod, p)]++
			if stays.Reason != "" && len(found.progress.Stays) < reporting.MaxBlockers {
				found.progress.Stays = append(found.progress.Stays, *stays)
			}
			continue
		}
		if !o.seen[pod.UID] {
			o.seen[pod.UID] = true
			arrived(pod)
		}
		if !k8s.IsFinished(pod) && !o.ignored(pod) {
			remaining[p.tier]++
			found.progress.Remaining++
		}
		pods = append(pods, p)
	}
	o.reached = min(o.plan.Next(o.reached, remaining), o.plan.Len()-1)
	for _, p := range pods {
		o.sort(p, &found)
	}
	found.keepUntilLast(o.worker)
	found.progress.Total = len(o.seen)
	found.progress.Terminating = len(found.leaving)
	if o.drain.Plan != nil {
		found.progress.Tier, found.progress.Tiers = o.reached+1, o.plan.Len()
		found.progress.Targets = o.plan.Targets(o.reached)
	}
	return found, nil
}

// place finds a pod's tier; a pod that stays on the node has none. A Blocker with a reason says why a pod stays that
// the plan is about.
func (o *observer) place(ctx context.Context, pod *corev1.Pod) (placed, *api.Blocker, error) {
	p := placed{target: target{Pod: pod, podType: drainplan.Default}}
	if !o.choose.Selects(pod) || slices.Contains(o.skip, k8s.PodName(pod)) {
		return p, &api.Blocker{}, nil
	}
	var err error
	if p.verdict, err = o.verdict(ctx, pod); err != nil {
		return p, nil, err
	}
	if p.verdict.Class == k8s.Skip {
		p.podType = podTypeOf(p.verdict)
	}
	tier, ok := o.plan.TierOf(drainplan.Pod{Type: p.podType, Priority: priority(pod), Labels: pod.Labels})
	if !ok {
		return p, &api.Blocker{}, nil
	}
	p.tier = tier
	stays := func(reason, message string) *api.Blocker {
		return &api.Blocker{Pod: k8s.PodName(pod), Reason: reason, Message: message, Owner: k8s.OwnerOf(pod), Since: pod.CreationTimestamp.Time}
	}
	switch {
	case !o.drain.Namespaces.Has(pod.Namespace):
		return p, stays("Namespace", "its namespace is not drained (drain.namespaces): it stays"), nil
	case p.podType == drainplan.Static && !o.drain.WaitsForStatic():
		return p, stays(k8s.StaticPod, "is a static pod of the kubelet, which nobody can evict: it stays"), nil
	case p.podType == drainplan.DaemonSet && k8s.ToleratesMaintenance(pod):
		return p, stays("ToleratesTaint", "its DaemonSet tolerates every taint and would put it back at once: it stays"), nil
	}
	return p, nil, nil
}

// whyStays is what a pod that stays is counted as.
func (o *observer) whyStays(pod *corev1.Pod, p placed) string {
	switch {
	case slices.Contains(o.skip, k8s.PodName(pod)):
		return "Skipped"
	case o.choose.IsOwn(pod):
		return k8s.OwnPod
	case p.verdict.Class == k8s.Skip:
		return p.verdict.Reason
	}
	return k8s.NotSelected
}

// stays reports whether a pod is left on the node by intent.
func (o *observer) stays(ctx context.Context, pod *corev1.Pod) (bool, error) {
	_, blocker, err := o.place(ctx, pod)
	return blocker != nil, err
}

// verdict asks kubectl's filters once about each version of a pod.
func (o *observer) verdict(ctx context.Context, pod *corev1.Pod) (k8s.Verdict, error) {
	if known, ok := o.verdicts[pod.UID]; ok && known.version == pod.ResourceVersion {
		return known.Verdict, nil
	}
	o.classify.Force, o.classify.DeleteEmptyDir = o.consents.to(pod)
	v, err := o.classify.Classify(ctx, pod)
	if err == nil {
		o.verdicts[pod.UID] = knownVerdict{Verdict: v, version: pod.ResourceVersion}
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
func (o *observer) sort(p placed, found *observation) {
	leaving := p.DeletionTimestamp != nil
	if leaving {
		found.leaving = append(found.leaving, p.Pod)
	}
	refusal, refused := o.refusalOf(p)
	switch {
	case p.tier > o.reached:
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
func (o *observer) refusalOf(p placed) (refusal k8s.Verdict, refused bool) {
	switch {
	case p.verdict.Class == k8s.Refuse:
		return p.verdict, true
	case p.podType == drainplan.DaemonSet && !o.mayLoseData(p.Pod) && k8s.HasEmptyDir(p.Pod):
		return k8s.WithoutStorageConsent, true
	case o.means.isProtected(p.Pod):
		return k8s.Verdict{Class: k8s.Refuse, Reason: reasonDoNotDisrupt,
			Message: fmt.Sprintf("asks not to be disrupted (%s): it is left alone until %s (protectedFor %s)", k8s.WishOf(p.Pod),
				o.means.protectedUntil().UTC().Format(time.RFC3339), o.drain.ProtectedFor)}, true
	default:
		return k8s.Verdict{}, false
	}
}

func (o *observer) mayLoseData(pod *corev1.Pod) bool {
	_, data := o.consents.to(pod)
	return data
}

// ignored reports whether the drain does not wait for a pod that should have ended by now: its node's kubelet does not answer, or it
// takes longer than the maintenance waits.
func (o *observer) ignored(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	late, patience := time.Since(pod.DeletionTimestamp.Time), o.drain.SkipWaitForDeleteTimeout.Std()
	return late > 0 && o.drain.OnNodeNotReady == spec.IgnoreStuck && o.node.Silent() || patience > 0 && late > patience
}

// reachedDaemonSets reports whether the drain has come to a tier of DaemonSet pods, or past one.
func (o *observer) reachedDaemonSets() bool {
	return slices.ContainsFunc(o.plan.Entries()[:o.reached+1], func(e drainplan.Entry) bool { return e.PodType == drainplan.DaemonSet })
}
