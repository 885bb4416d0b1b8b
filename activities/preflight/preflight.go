// Package preflight looks at what a drain would meet. It changes nothing in the cluster.
package preflight

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock/activities/failure"
	"drydock/activities/heartbeat"
	"drydock/activities/reporting"
	"drydock/api"
	"drydock/k8s"
	"drydock/rules/drainplan"
	"drydock/rules/preflight"
	"drydock/rules/spec"
)

// Preflights look at what a drain would meet. They change nothing in the cluster.
type Activities struct {
	Client   kubernetes.Interface
	Temporal client.Client
	// Surveyor is shared by all preflights of the worker.
	Surveyor *k8s.Surveyor

	// first and last bound the pause between two looks of AwaitPreflight; zero values are 15 s and 1 min.
	first, last time.Duration
}

const (
	firstLook = 15 * time.Second
	lastLook  = time.Minute
)

// PreflightInput asks what a drain of a node would meet.
type Input struct {
	Node  string     `json:"node"`
	Drain spec.Drain `json:"drain"`
	// WaitsForPods: the maintenance waits for pods before its drain.
	WaitsForPods bool `json:"waitsForPods,omitempty"`
	// Together are other nodes that go at the same time, and so have no room for pods.
	Together []string `json:"together,omitempty"`
	// BlockedSignal is the signal by which the workflow wants to hear what AwaitPreflight waits for.
	BlockedSignal string `json:"blockedSignal,omitempty"`
}

// CheckPreflight looks once. What the worker's account may not look at is a finding of the report, not an error.
func (p *Activities) CheckPreflight(ctx context.Context, in Input) (preflight.Report, error) {
	facts, err := p.facts(ctx, in)
	if err != nil {
		return preflight.Report{}, failure.Translate(err)
	}
	return preflight.Decide(in.Drain, facts)
}

// AwaitPreflight looks again and again until nothing would stop the drain, or there is no such node. It returns what it
// saw last. Errors: WorkerStopping.
func (p *Activities) AwaitPreflight(ctx context.Context, in Input) (preflight.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pulse := heartbeat.Start(ctx)
	defer pulse.Stop()
	report := reporting.Reporter{Temporal: p.Temporal, Signal: in.BlockedSignal, Heartbeats: pulse}
	since := map[string]time.Time{}
	pause, longest := orDefault(p.first, firstLook), orDefault(p.last, lastLook)
	for {
		seen, err := p.lookUntilStopped(ctx, in)
		if err != nil || seen.ProblemCount() == 0 || seen.Has(preflight.NodeMissing) {
			return seen, err
		}
		progress := waitsFor(seen, since)
		report.Report(ctx, progress)
		if err := p.pause(ctx, pause, func() { report.Report(ctx, progress) }); err != nil {
			return preflight.Report{}, err
		}
		pause = min(2*pause, longest)
	}
}

func orDefault(d, usual time.Duration) time.Duration {
	if d == 0 {
		return usual
	}
	return d
}

// lookUntilStopped is CheckPreflight that ends with its worker: in a large cluster a look may take long.
func (p *Activities) lookUntilStopped(ctx context.Context, in Input) (preflight.Report, error) {
	type result struct {
		report preflight.Report
		err    error
	}
	looked := make(chan result, 1)
	go func() {
		r, err := p.CheckPreflight(ctx, in)
		looked <- result{r, err}
	}()
	select {
	case r := <-looked:
		return r.report, r.err
	case <-ctx.Done():
		return preflight.Report{}, ctx.Err()
	case <-activity.GetWorkerStopChannel(ctx):
		return preflight.Report{}, failure.WorkerStopping()
	}
}

// pause waits, and shows meanwhile that the activity lives.
func (p *Activities) pause(ctx context.Context, d time.Duration, show func()) error {
	again := time.NewTimer(d)
	defer again.Stop()
	beat := time.NewTicker(heartbeat.Every)
	defer beat.Stop()
	for {
		select {
		case <-again.C:
			return nil
		case <-beat.C:
			show()
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return failure.WorkerStopping()
		}
	}
}

// waitsFor is a report in the form in which drains tell their workflows what blocks them. since remembers when each
// problem was first seen.
func waitsFor(report preflight.Report, since map[string]time.Time) api.DrainProgress {
	progress := api.DrainProgress{At: report.At}
	present := map[string]bool{}
	for _, problem := range report.Problems {
		key := string(problem.Code) + " " + problem.Object
		present[key] = true
		if _, known := since[key]; !known {
			since[key] = report.At
		}
		if len(progress.Blockers) < reporting.MaxBlockers {
			progress.Blockers = append(progress.Blockers, api.Blocker{
				Pod: problem.Object, Reason: string(problem.Code), Message: problem.Message, Since: since[key],
			})
		}
	}
	for key := range since {
		if !present[key] {
			delete(since, key)
		}
	}
	progress.MoreBlockers = report.ProblemCount() - len(progress.Blockers)
	return progress
}

// facts gathers what the decision is made of.
func (p *Activities) facts(ctx context.Context, in Input) (preflight.Facts, error) {
	facts := preflight.Facts{At: time.Now().UTC(), Node: preflight.Node{Name: in.Node, Ready: true}}
	if err := p.permissions(ctx, in, &facts); err != nil {
		return facts, err
	}
	node, err := p.Client.CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		facts.Node.Missing = true
		facts.Node.Similar = p.similar(ctx, in.Node)
		return facts, nil
	case err == nil:
		facts.Node.Ready = k8s.IsReady(node)
	case unchecked(err, "the node", &facts) != nil:
		return facts, fmt.Errorf("reading node %s: %w", in.Node, err)
	default:
		node = nil
	}
	pods, err := k8s.PodsOn(ctx, p.Client, in.Node)
	if err := unchecked(err, "the pods on the node", &facts); err != nil {
		return facts, err
	}
	budgets, err := k8s.BudgetsIn(ctx, p.Client, namespacesOf(pods))
	if err := unchecked(err, "the budgets", &facts); err != nil {
		return facts, err
	}
	if err := p.pods(ctx, in.Drain, pods, budgets, &facts); err != nil {
		return facts, err
	}
	return facts, p.room(ctx, in, node, pods, &facts)
}

// unchecked takes a refusal by the API server as something that could not be looked at, and returns every other error.
func unchecked(err error, what string, facts *preflight.Facts) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	facts.Unchecked = append(facts.Unchecked, fmt.Sprintf("%s could not be looked at: %v", what, err))
	return nil
}

func (p *Activities) permissions(ctx context.Context, in Input, facts *preflight.Facts) error {
	needs := preflight.Needs(in.Drain, in.WaitsForPods)
	requests := make([]authorizationv1.ResourceAttributes, len(needs))
	for i, need := range needs {
		requests[i] = need.ResourceAttributes
	}
	allowed, err := k8s.MayDo(ctx, p.Client, requests)
	if err != nil {
		return unchecked(err, "the worker's permissions", facts)
	}
	for i, need := range needs {
		if !allowed[i] {
			facts.Denied = append(facts.Denied, need)
		}
	}
	return nil
}

// similar are names of nodes that may be meant. It is a courtesy: that it cannot be found out is no error.
func (p *Activities) similar(ctx context.Context, name string) []string {
	nodes, err := p.Surveyor.Survey(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Node.Name)
	}
	return k8s.Similar(name, names)
}

func namespacesOf(pods []*corev1.Pod) map[string]bool {
	namespaces := map[string]bool{}
	for _, pod := range pods {
		namespaces[pod.Namespace] = true
	}
	return namespaces
}

func (p *Activities) pods(ctx context.Context, drain spec.Drain, pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget, facts *preflight.Facts) error {
	var regexps []string
	for _, filter := range drain.PodEvictionFilters {
		regexps = append(regexps, filter.ByResourceNameRegex)
	}
	choose, err := k8s.NewSelection(drain.PodSelector, regexps)
	if err != nil {
		return err
	}
	classify := k8s.NewClassifier(p.Client, drain.Force, drain.DeleteEmptyDir)
	described := map[string]int{}
	for _, pod := range pods {
		verdict, err := classify.Classify(ctx, pod)
		if err != nil {
			return err
		}
		f := podFacts(pod, verdict, drain.DeleteEmptyDir)
		f.Selected = choose.Selects(pod)
		if !k8s.OutsideBudgets(pod) {
			for _, budget := range k8s.BudgetsOf(pod, budgets) {
				name := budget.Namespace + "/" + budget.Name
				refuses := k8s.Refuses(budget, pod)
				f.Budgets = append(f.Budgets, preflight.Asked{Budget: name, Refuses: refuses})
				at, known := described[name]
				if !known {
					at = len(facts.Budgets)
					described[name] = at
					facts.Budgets = append(facts.Budgets, budgetFacts(budget))
				}
				// What would unblock it depends on the pod: a refused one says more.
				if refuses || facts.Budgets[at].Message == "" {
					facts.Budgets[at].Message = k8s.Unblock(budget, pod)
				}
			}
		}
		facts.Pods = append(facts.Pods, f)
	}
	return nil
}

func podFacts(pod *corev1.Pod, verdict k8s.Verdict, deleteEmptyDir bool) preflight.PodFacts {
	f := preflight.PodFacts{
		Name: k8s.PodName(pod), Type: drainplan.Default, Labels: pod.Labels,
		Terminating: pod.DeletionTimestamp != nil, Finished: k8s.IsFinished(pod),
		Returns: k8s.ToleratesMaintenance(pod),
	}
	if pod.Spec.Priority != nil {
		f.Priority = *pod.Spec.Priority
	}
	switch {
	case verdict.Class == k8s.Skip && verdict.Reason == k8s.DaemonSetPod:
		f.Type = drainplan.DaemonSet
		if !deleteEmptyDir && k8s.HasEmptyDir(pod) {
			// kubectl's filters skip it before they look at its volumes; a tier of DaemonSets deletes it.
			f.Refusal, f.Message = k8s.WithoutStorageConsent.Reason, k8s.WithoutStorageConsent.Message
		}
	case verdict.Class == k8s.Skip && verdict.Reason == k8s.StaticPod:
		f.Type = drainplan.Static
	case verdict.Class == k8s.Refuse:
		f.Refusal, f.Message = verdict.Reason, verdict.Message
	}
	f.Wish = k8s.WishOf(pod)
	return f
}

func budgetFacts(budget *policyv1.PodDisruptionBudget) preflight.Budget {
	s := budget.Status
	return preflight.Budget{
		Budget: budget.Namespace + "/" + budget.Name, Allowed: s.DisruptionsAllowed, Healthy: s.CurrentHealthy,
		Desired: s.DesiredHealthy, Pods: s.ExpectedPods, Impossible: k8s.Impossible(budget),
	}
}

// room looks whether the pods that leave find a place: those that a controller creates anew anywhere.
func (p *Activities) room(ctx context.Context, in Input, node *corev1.Node, pods []*corev1.Pod, facts *preflight.Facts) error {
	if in.Drain.Mode != spec.ModeEvict && in.Drain.Mode != spec.ModeWait {
		return nil
	}
	leaving, err := preflight.Leaving(in.Drain, facts.Pods)
	if err != nil {
		return err
	}
	var moving []*corev1.Pod
	for i, pod := range pods {
		if leaving[i] && metav1.GetControllerOf(pod) != nil {
			moving = append(moving, pod)
		}
	}
	all, err := p.Surveyor.Survey(ctx)
	if err != nil {
		return unchecked(err, "the room on other nodes", facts)
	}
	nodes := k8s.Without(all, append([]string{in.Node}, in.Together...)...)
	room := &preflight.Room{Nodes: len(nodes), Pods: len(moving)}
	for _, h := range k8s.Fit(moving, node, nodes) {
		room.Unplaced = append(room.Unplaced, preflight.Unplaced{Pod: k8s.PodName(h.Pod), Message: h.Message, Bound: h.Bound})
	}
	facts.Room = room
	return nil
}
