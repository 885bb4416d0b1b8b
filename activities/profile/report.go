package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/chain"
	"drydock.dev/drydock/rules/profile/state"
)

// believeAlone is the attempt from which on a report is made by a worker that does not evaluate: it knows not since when checks say
// what they say.
const believeAlone = 6

// ErrorOtherWorker is the type of the error of a worker that does not evaluate the nodes: another may.
const ErrorOtherWorker = "OtherWorker"

// defaultReport is how many nodes a report has where nothing is said.
const defaultReport = 100

// ReportProfiles looks at the nodes as an evaluation does, and does nothing.
func (a *Activities) ReportProfiles(ctx context.Context, in api.ProfileReportInput) (api.ProfileReport, error) {
	cluster := api.ClusterOf(activity.GetInfo(ctx).TaskQueue)
	report := api.ProfileReport{At: time.Now().UTC()}
	if a.File == nil {
		report.Stopped = "the worker has no profiles: profiles.file in its configuration names the file"
		return report, nil
	}
	history, evaluates := a.evaluators.historyOf(api.ProfilesID(cluster), in.Node)
	if in.Node != "" && !evaluates && activity.GetInfo(ctx).Attempt < believeAlone {
		return report, temporal.NewApplicationErrorWithOptions("another worker evaluates the nodes", ErrorOtherWorker,
			temporal.ApplicationErrorOptions{NextRetryDelay: 50 * time.Millisecond})
	}
	config, problem := a.File.Read()
	report.Problem = problem
	known, err := a.known(ctx, cluster, &report)
	if err != nil {
		return report, err
	}
	if config == nil {
		report.Stopped = "no file was good since the worker started"
		return report, nil
	}
	all, err := a.decided(ctx, config, known, report.At)
	if err != nil {
		return report, failure.Translate(ctx, a.Nodes.Client(), err)
	}
	report.Counts = countsOf(all)
	if in.Node == "" {
		list(&report, all, in)
		return report, nil
	}
	i := slices.IndexFunc(all, func(e rules.Evaluation) bool { return e.Node == in.Node })
	if i < 0 {
		return report, temporal.NewNonRetryableApplicationError(fmt.Sprintf("there is no node %s", in.Node), api.ErrorNodeNotFound, nil)
	}
	explanation := api.ProfileExplanation{Evaluation: all[i], History: history.After(all[i], report.At)}
	report.Explanation = &explanation
	report.Lines = explanation.Explain(explanation.History, report.At)
	return report, nil
}

// known asks Profiles what is under way.
func (a *Activities) known(ctx context.Context, cluster string, report *api.ProfileReport) (api.ProfilesState, error) {
	var known api.ProfilesState
	answer, err := a.Temporal.QueryWorkflow(ctx, api.ProfilesID(cluster), "", api.QueryState)
	var nobody *serviceerror.NotFound
	if errors.As(err, &nobody) {
		report.Stopped = "workflow " + api.ProfilesID(cluster) + " does not run: a worker that has profiles starts it"
		return known, nil
	}
	if err == nil {
		err = answer.Get(&known)
	}
	if err != nil {
		return known, fmt.Errorf("asking workflow %s what is under way: %w", api.ProfilesID(cluster), err)
	}
	report.Stopped = known.Waiting
	return known, nil
}

// decided is what an evaluation would decide.
func (a *Activities) decided(ctx context.Context, config *rules.Config, known api.ProfilesState, now time.Time) ([]rules.Evaluation, error) {
	view, err := a.Nodes.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	busy := map[string]map[string]rules.Busy{}
	for _, u := range slices.Concat(known.UnderWay, known.Failed) {
		if busy[u.Node] == nil {
			busy[u.Node] = map[string]rules.Busy{}
		}
		busy[u.Node][u.Profile] = u.Busy
	}
	var objects []*corev1.Node
	var nodes []rules.Node
	for _, n := range view.List() {
		objects = append(objects, n)
		nodes = append(nodes, rules.Node{Object: n, Busy: busy[n.Name]})
	}
	return config.Decide(nodes, a.Facts.Gather(ctx, config.Needs(), objects), now), nil
}

// list fills a report with the nodes that were requested.
func list(report *api.ProfileReport, all []rules.Evaluation, in api.ProfileReportInput) {
	most := min(in.Limit, api.MaxProfileReport)
	if most <= 0 {
		most = defaultReport
	}
	for _, one := range all {
		if strings.Compare(one.Node, in.After) <= 0 {
			continue
		}
		node := listed(one, in)
		if len(node.Profiles) == 0 && (node.Problem == "" || in.Profile != "" || in.State != "") {
			continue
		}
		if len(report.Nodes) == most {
			report.Next = report.Nodes[most-1].Node
			return
		}
		report.Nodes = append(report.Nodes, node)
	}
}

func listed(one rules.Evaluation, in api.ProfileReportInput) api.ProfileNode {
	node := api.ProfileNode{Node: one.Node, State: one.Label, Problem: one.Problem}
	for _, p := range one.Profiles {
		if in.Profile != "" && p.Profile != in.Profile || in.State != "" && p.State != in.State {
			continue
		}
		shown := api.NodeProfile{Profile: p.Profile, Unknown: p.Unknown, State: p.State, Since: p.Since, Busy: p.Busy}
		if p.Busy != nil && !p.Busy.Until.IsZero() {
			shown.Failure = p.Busy.Failed
		}
		shown.Waiting = waiting(p)
		for _, o := range p.Failing() {
			shown.Failing = append(shown.Failing, o.Instance)
		}
		node.Profiles = append(node.Profiles, shown)
	}
	return node
}

// waiting are the checks that keep a profile in its state, unless it is operational: nothing keeps it there. Failing checks are listed
// by themselves.
func waiting(p rules.Evaluated) []string {
	if p.State == state.Operational {
		return nil
	}
	var names []string
	for _, t := range p.Transitions {
		if t.Holds && t.Refused != "" {
			names = append(names, t.Refused)
		}
		for _, name := range missing(t) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// missing are the checks of a transition that keep it from holding, without the failing ones.
func missing(t rules.Considered) []string {
	parsed, err := chain.ParseCheck(t.Check)
	if err != nil {
		return nil // it was read before
	}
	of := map[string]rules.Outcome{}
	for _, o := range t.Checks {
		of[o.Instance] = o
	}
	names := parsed.Missing(func(name string) bool { return of[name].Holds })
	return slices.DeleteFunc(names, func(name string) bool { return of[name].Error != "" })
}
