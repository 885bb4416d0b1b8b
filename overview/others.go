package overview

import (
	"cmp"
	"context"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/views"
)

// asks is how many of some workflows to ask.
func (r *reading) asks() int {
	if r.silent != nil {
		return 0
	}
	return askedOthers
}

func (r *reading) plans(ctx context.Context) {
	all, err := r.source.plans(ctx, r.asks())
	if err != nil {
		r.unread(partPlans, err)
		return
	}
	plans := &api.ClusterPlans{First: []api.PlanSummary{}}
	var unanswered error
	for _, v := range all {
		r.needs(partPlans, attentionOfPlan(v)...)
		plans.First, unanswered = append(plans.First, v.Summary()), cmp.Or(unanswered, v.Unanswered)
	}
	if unanswered != nil {
		r.unread(partPlans, unanswered)
	}
	plans.First, plans.More = first(plans.First)
	r.status.Plans = plans
}

// attentionOfPlan is what a plan waits for a person for, and what fails again and again.
func attentionOfPlan(v client.PlanView) (all []api.Attention) {
	s, about := v.Status, "plan "+v.Name
	if s == nil {
		return nil
	}
	status := "drydock plan status " + v.Name
	next := views.NextOfPlan(v.Summary())
	switch {
	case s.Phase == api.PlanPaused:
		all = append(all, api.Attention{About: about, What: "paused" + colon(s.Failure), Since: &s.Since, Next: append(next, status)})
	case len(next) > 0:
		all = append(all, api.Attention{About: about, What: "waits for " + s.WaitingFor, Next: append(next, status)})
	}
	for _, t := range s.Troubles {
		all = append(all, api.Attention{About: about, What: t.String(), Since: &t.Since, Next: []string{status}})
	}
	return all
}

func (r *reading) checks(ctx context.Context) {
	all, err := r.source.checks(ctx, r.asks())
	if err != nil {
		r.unread(partChecks, err)
		return
	}
	checks := &api.ClusterHealthChecks{First: []api.ClusterHealthCheck{}}
	var unanswered error
	for _, v := range all {
		c := api.ClusterHealthCheck{Name: v.Name}
		if s := v.Status; s != nil {
			c.Phase, c.Observed, c.Healthy = string(s.Phase), s.ObservedNodes, s.HealthyNodes
			c.Unhealthy, c.Remediating, c.Message = s.Unhealthy, s.Remediating, cmp.Or(s.Blocked, s.Reason)
			if s.WaitingFor != "" {
				c.Message = "waits for " + s.WaitingFor
			}
		}
		r.needs(partChecks, attentionOfCheck(v)...)
		checks.First, unanswered = append(checks.First, c), cmp.Or(unanswered, v.Unanswered)
	}
	if unanswered != nil {
		r.unread(partChecks, unanswered)
	}
	checks.First, checks.More = first(checks.First)
	r.status.HealthChecks = checks
}

// attentionOfCheck is what keeps a check from remediating.
func attentionOfCheck(v client.HealthCheckView) (all []api.Attention) {
	s, about, status := v.Status, "health check "+v.Name, "drydock health status "+v.Name
	if s == nil {
		return nil
	}
	paused := false
	for _, p := range s.Pauses {
		if p.By == "" { // its configuration has it so
			continue
		}
		paused = true
		all = append(all, api.Attention{
			About: about, What: "paused by " + p.By + colon(p.Why), Since: &p.At,
			Next: []string{"drydock health resume " + v.Name + " --of " + quoted(p.By)},
		})
	}
	switch {
	case s.Phase == health.PhaseDisabled:
		all = append(all, api.Attention{About: about, What: "disabled" + colon(s.Reason), Next: []string{status}})
	case s.Blocked != "" && s.Unhealthy > 0 && !paused:
		all = append(all, api.Attention{About: about, What: number.Of(s.Unhealthy, "unhealthy node") + ": " + s.Blocked, Next: []string{status}})
	}
	for _, t := range s.Troubles {
		all = append(all, api.Attention{About: about, What: t.String(), Since: &t.Since, Next: []string{status}})
	}
	return all
}

func (r *reading) profiles(ctx context.Context) {
	if r.silent != nil {
		r.unread(partProfiles, r.silent)
		return
	}
	report, err := r.source.profiles(ctx)
	switch {
	case err != nil:
		r.unread(partProfiles, err)
		return
	case report == nil:
		return
	}
	p := &api.ClusterProfiles{Problem: report.Problem, Stopped: report.Stopped, Counts: append([]api.ProfileCount{}, report.Counts...)}
	p.InMaintenance = api.HeldByProfiles{Nodes: report.Nodes, More: report.Next != ""}
	r.status.Profiles = p
	const about, list = "profiles", "drydock profile list"
	if p.Stopped != "" {
		r.needs(partProfiles, api.Attention{About: about, What: "no node is evaluated: " + p.Stopped, Next: []string{list}})
	}
	if p.Problem != "" {
		r.needs(partProfiles, api.Attention{About: about, What: "the file is not in force as it stands: " + p.Problem, Next: []string{"drydock profile lint FILE"}})
	}
	p.Counts, p.MoreCounts = first(p.Counts)
	for _, c := range report.Counts {
		if c.Failing > 0 {
			r.needs(partProfiles, api.Attention{
				About: "profile " + c.Profile, What: "checks of " + number.Of(c.Failing, "node") + " in " + string(c.State) + " cannot be evaluated",
				Next: []string{list + " " + c.Profile + " --state " + string(c.State)},
			})
		}
	}
}
