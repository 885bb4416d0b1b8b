package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

const (
	// preflightsAtOnce bounds the nodes that are looked at together, preflightWithin the look at one.
	preflightsAtOnce = 8
	preflightWithin  = 5 * time.Minute
	// lookBack and maxPast bound the maintenances that say how long one takes.
	lookBack = 30 * 24 * time.Hour
	maxPast  = 200
)

// preview shows what a plan would do, and starts nothing.
func (o *createOptions) preview(ctx context.Context, c *invocation.Connection, name string, p plan.Plan, chosen choice) error {
	if !chosen.known && len(p.Nodes) == 0 {
		return exit.Hint(fmt.Errorf("--dry-run over nodes that are not named needs Kubernetes: %w", chosen.why), "Set KUBECONFIG or --kubeconfig, or name the nodes.")
	}
	if chosen.known && p.Strategy.Order == plan.FewestPods {
		if err := chosen.countPods(ctx, o.app); err != nil {
			return err
		}
	}
	preview := api.PlanPreview{Name: name, Spec: p, Total: len(chosen.nodes), Warnings: chosen.warnings(p), Waves: []api.PlanWave{}}
	groups := waves(p, chosen, c.Clock())
	for _, nodes := range groups {
		preview.Waves = append(preview.Waves, api.PlanWave{Nodes: nodes})
	}
	turns, known := groups, true
	ahead, err := limitsAhead(ctx, c.Scheduler(), chosen.labels)
	if err != nil {
		preview.Warnings = append(preview.Warnings, "the limits in force are not known: "+terminal.OneLine(err.Error()))
	} else {
		preview.Warnings = append(preview.Warnings, short(p, ahead, groups)...)
		turns, known = allowed(p, ahead, groups)
	}
	if err := o.lookAhead(ctx, c, p, groups, &preview); err != nil {
		return err
	}
	each, among, err := pastDurations(ctx, c, p.Requestor, chosen.names())
	if err != nil {
		return c.Explain(err)
	}
	switch {
	case !known:
		preview.NoEstimate = "as long as a limit keeps nodes from being begun (see the warnings)"
	case len(each) == 0:
		preview.NoEstimate = "no maintenance completed in the last 30 days"
	default:
		median := plan.Median(each)
		preview.Estimate = &api.PlanEstimate{
			Duration: period.Duration(plan.Estimate(p.Strategy, turns, median).Round(time.Second)), Each: period.Duration(median.Round(time.Second)), Of: len(each), Among: among,
		}
	}
	return cmp.Or(o.output.Write(o.app.Stdout, preview, views.PlanPreview(preview, o.output.Wide(), views.At(c.Clock()))), invocation.WouldStop(preview.Preflights))
}

// lookAhead looks at what would stop the drains of the first nodes.
func (o *createOptions) lookAhead(ctx context.Context, c *invocation.Connection, p plan.Plan, groups [][]string, preview *api.PlanPreview) error {
	left := o.preflights
	preview.Preflights = []preflight.Report{}
	if left > 0 && preview.Total > 0 {
		if err := c.HasWorker(ctx); err != nil {
			return err
		}
	}
	display := o.app.Progress(o.app.Stderr)
	total := min(left, preview.Total)
	for i, nodes := range groups {
		if left == 0 {
			break
		}
		first := nodes[:min(left, len(nodes))]
		left -= len(first)
		display.Update("preflight", terminal.Line{Label: "preflight", Text: fmt.Sprintf("%d of %s", len(preview.Preflights), number.Of(total, "node"))})
		reports, err := lookAt(ctx, c, p, first, nodes)
		if err != nil {
			return err
		}
		preview.Preflights = append(preview.Preflights, reports...)
		preview.Waves[i].Shared = preflight.SharedBudgets(reports)
	}
	if total > 0 {
		display.Update("preflight", terminal.Line{Label: "preflight", Text: fmt.Sprintf("%d of %s", total, number.Of(total, "node"))})
		display.Settle("preflight")
	}
	preview.NotLookedAt = preview.Total - len(preview.Preflights)
	return nil
}

// lookAt runs the preflights of nodes of one wave, a few at a time.
func lookAt(ctx context.Context, c *invocation.Connection, p plan.Plan, nodes, wave []string) ([]preflight.Report, error) {
	reports := make([]preflight.Report, len(nodes))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(preflightsAtOnce)
	for i, node := range nodes {
		group.Go(func() error {
			raw, err := p.InputOf(node, c.Clock())
			if err != nil {
				return err
			}
			fields := client.Input{}
			if err := json.Unmarshal(raw, &fields); err != nil {
				return err
			}
			if others := slices.DeleteFunc(slices.Clone(wave), func(n string) bool { return n == node }); len(others) > 0 {
				fields["together"] = others
			}
			reports[i], err = c.Preflight(within, node, fields, preflightWithin)
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, exit.WithCode(exit.Interrupted, errors.New("interrupted; nothing was started"))
	}
	return reports, c.Explain(err)
}

// pastDurations are how long maintenances took that completed in the last 30 days, from the slot to the end, and among which
// these were: those that are most like the plan's say more than others.
func pastDurations(ctx context.Context, c *invocation.Connection, requestor string, nodes []string) (took []time.Duration, among string, err error) {
	all, err := c.List(ctx, client.ListOptions{Limit: 5 * maxPast})
	if err != nil {
		return nil, "", err
	}
	since := c.Clock().Add(-lookBack)
	all = slices.DeleteFunc(all, func(m client.Maintenance) bool {
		return m.Execution != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED || m.Closed.Before(since)
	})
	return tookMost(alike(all, requestor, nodes), func(some []client.Maintenance) ([]client.View, error) {
		return c.ObserveAll(ctx, some[:min(maxPast, len(some))])
	})
}

// likeness is maintenances with what they have in common with those of a plan.
type likeness struct {
	all   []client.Maintenance
	among string
}

// tookMost are how long those of the first likeness took of which it is known: one that ended otherwise, as its node was gone, says nothing.
func tookMost(most []likeness, observe func([]client.Maintenance) ([]client.View, error)) (took []time.Duration, among string, err error) {
	for _, l := range most {
		observed, err := observe(l.all)
		if err != nil {
			return nil, "", err
		}
		for _, v := range observed {
			if d, ok := worked(v); ok {
				took = append(took, d)
			}
		}
		if len(took) > 0 {
			return took, l.among, nil
		}
	}
	return nil, "", nil
}

// alike are maintenances by what they have in common with those of a plan, the most first.
func alike(all []client.Maintenance, requestor string, nodes []string) []likeness {
	ofPlan := map[string]bool{}
	for _, name := range nodes {
		ofPlan[name] = true
	}
	var same, there, others []client.Maintenance
	for _, m := range all {
		switch {
		case m.Requestor == requestor:
			same = append(same, m)
		case ofPlan[m.Node]:
			there = append(there, m)
		default:
			others = append(others, m)
		}
	}
	return []likeness{{same, "of " + requestor}, {there, "on its nodes"}, {others, "on other nodes"}}
}

// worked is how long a maintenance took that completed, from the slot that it got first.
func worked(v client.View) (time.Duration, bool) {
	if v.Phase() != api.Completed {
		return 0, false
	}
	for _, t := range v.Transitions() {
		if t.Phase == api.Scheduled || t.Phase == api.Cordoning {
			return v.Ended().Sub(t.At), true
		}
	}
	return 0, false
}
