package overview

import (
	"context"

	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
)

// source is what a cluster's status is read from.
type source interface {
	// state is the scheduler's, with the first pending requests, and with all those that are refused with a code.
	state(ctx context.Context, pending int, code schedule.Code) (api.State, error)
	// maintenances are the first that run, newest first.
	maintenances(ctx context.Context, limit int) ([]client.Maintenance, error)
	// look asks maintenances for their status.
	look(ctx context.Context, some []client.Maintenance) ([]client.View, error)
	// plans are those that run, all by name and the first asked for their status; checks likewise.
	plans(ctx context.Context, ask int) ([]client.PlanView, error)
	checks(ctx context.Context, ask int) ([]client.HealthCheckView, error)
	// profiles are nil if no node is evaluated by profiles.
	profiles(ctx context.Context) (*api.ProfileReport, error)
}

// temporal reads from Temporal and asks workers.
type temporal struct{ *client.Client }

func (t temporal) state(ctx context.Context, pending int, code schedule.Code) (api.State, error) {
	return t.Scheduler().StateWith(ctx, pending, code)
}

func (t temporal) maintenances(ctx context.Context, limit int) ([]client.Maintenance, error) {
	return t.List(ctx, client.ListOptions{Running: true, Limit: limit})
}

func (t temporal) look(ctx context.Context, some []client.Maintenance) ([]client.View, error) {
	return t.ObserveAll(ctx, some)
}

func (t temporal) plans(ctx context.Context, ask int) ([]client.PlanView, error) {
	runs, err := client.ListPlans(ctx, t.Client, true)
	if err != nil {
		return nil, err
	}
	return Plans(ctx, t.Client, runs, ask)
}

// Plans looks at runs of plans: it asks the first of those that run, and reads what those that ended returned.
func Plans(ctx context.Context, c *client.Client, runs []client.Run, ask int) ([]client.PlanView, error) {
	return each(ctx, runs, ask, func(run client.Run) client.PlanView { return client.PlanView{Run: run} },
		func(ctx context.Context, run client.Run) (client.PlanView, error) {
			p := client.PlanOf(c, run.Name)
			if !run.Running() {
				return p.Ended(ctx, run)
			}
			return p.Observe(ctx, api.PlanStatusRequest{Limit: 1})
		})
}

func (t temporal) checks(ctx context.Context, ask int) ([]client.HealthCheckView, error) {
	runs, err := client.ListHealthChecks(ctx, t.Client, true)
	if err != nil {
		return nil, err
	}
	return HealthChecks(ctx, t.Client, runs, ask)
}

// HealthChecks looks at runs of health checks as Plans does at those of plans.
func HealthChecks(ctx context.Context, c *client.Client, runs []client.HealthCheckRun, ask int) ([]client.HealthCheckView, error) {
	return each(ctx, runs, ask, func(run client.HealthCheckRun) client.HealthCheckView {
		return client.HealthCheckView{HealthCheckRun: run}
	},
		func(ctx context.Context, run client.HealthCheckRun) (client.HealthCheckView, error) {
			return client.HealthCheckOf(c, run.Name).Look(ctx, run, api.HealthStatusRequest{Limit: 1})
		})
}

// askedAtOnce bounds the workflows that are asked together.
const askedAtOnce = 8

// each asks the first of some runs; of the others only what lists know is known.
func each[R, V any](ctx context.Context, runs []R, ask int, known func(R) V, look func(context.Context, R) (V, error)) ([]V, error) {
	views := make([]V, len(runs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i, run := range runs {
		if i >= ask {
			views[i] = known(run)
			continue
		}
		group.Go(func() (err error) {
			views[i], err = look(ctx, run)
			return err
		})
	}
	return views, group.Wait()
}

func (t temporal) profiles(ctx context.Context) (*api.ProfileReport, error) {
	if runs, err := t.RunsProfiles(ctx); err != nil || !runs {
		return nil, err
	}
	report, err := t.ProfileReport(ctx, api.ProfileReportInput{State: state.Maintenance, Limit: shown}, Within)
	return &report, err
}
