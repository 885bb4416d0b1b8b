package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// evaluator knows what becomes of nodes by their profiles.
type evaluator interface {
	// runs reports whether nodes are evaluated at all.
	runs(ctx context.Context) (bool, error)
	report(ctx context.Context, in api.ProfileReportInput) (api.ProfileReport, error)
}

func (t temporal) runs(ctx context.Context) (bool, error) {
	return client.RunsProfiles(ctx, t.c.Client)
}

func (t temporal) report(ctx context.Context, in api.ProfileReportInput) (api.ProfileReport, error) {
	return t.c.ProfileReport(ctx, in, within)
}

// HeldByProfiles are the nodes that profiles hold in maintenance, the first of them, or of a node itself alone. Those of maintenances that
// profiles have begun are left out: they are listed as such. What cannot be found out is a warning.
func HeldByProfiles(ctx context.Context, c *invocation.Connection, node string, begun []api.MaintenanceSummary, warnings io.Writer) api.HeldByProfiles {
	held, err := heldByProfiles(ctx, temporal{c}, node, begun)
	if err != nil && ctx.Err() == nil && !isNoNode(err) {
		why := terminal.OneLine(invocation.WithoutKeys(err).Error())
		fmt.Fprintf(warnings, "Warning: it is not known which nodes profiles hold in maintenance: %s\n", why)
	}
	return held
}

// isNoNode reports whether the worker knows that there is no such node: then no profile holds it.
func isNoNode(err error) bool {
	var failed *client.FailedError
	return errors.As(err, &failed) && failed.Kind == api.ErrorNodeNotFound
}

// WhyNone is an error with what is known of the node in place of a maintenance, where the error is that none of the node runs: that a
// profile holds it, or that there is no such node.
func WhyNone(ctx context.Context, c *invocation.Connection, err error) error {
	return whyNone(ctx, temporal{c}, c.Program, err)
}

func whyNone(ctx context.Context, e evaluator, program string, err error) error {
	var none *client.NotFoundError
	if !errors.As(err, &none) || len(none.Others) > 0 {
		return err
	}
	held, unknown := heldByProfiles(ctx, e, none.Node, nil)
	switch {
	case isNoNode(unknown):
		return fmt.Errorf("there is no node %s: %w", none.Node, err)
	case unknown != nil || len(held.Nodes) == 0:
		return err
	}
	var names []string
	for _, p := range held.Nodes[0].Profiles {
		names = append(names, "profile "+p.Profile)
	}
	err = fmt.Errorf("%w: it is in maintenance by %s", none, strings.Join(names, ", "))
	return exit.Hint(err, `"%s profile explain %s" says what moves it on.`, program, none.Node)
}

func heldByProfiles(ctx context.Context, e evaluator, node string, begun []api.MaintenanceSummary) (held api.HeldByProfiles, err error) {
	if runs, err := e.runs(ctx); err != nil || !runs {
		return held, err
	}
	in := api.ProfileReportInput{State: state.Maintenance, Limit: shown}
	if node != "" {
		in = api.ProfileReportInput{Node: node}
	}
	report, err := e.report(ctx, in)
	if err != nil {
		return held, err
	}
	held = api.HeldByProfiles{Nodes: report.Nodes, More: report.Next != ""}
	if e := report.Explanation; e != nil {
		held.Nodes = []api.ProfileNode{ofExplanation(*e)}
	}
	for i := range held.Nodes {
		n := &held.Nodes[i]
		n.Profiles = slices.DeleteFunc(slices.Clone(n.Profiles), func(p api.NodeProfile) bool {
			return p.State != state.Maintenance || slices.ContainsFunc(begun, func(m api.MaintenanceSummary) bool {
				return m.Node == n.Node && m.Requestor == api.ProfileRequestor(p.Profile) && m.EndedAt == nil
			})
		})
	}
	held.Nodes = slices.DeleteFunc(held.Nodes, func(n api.ProfileNode) bool { return len(n.Profiles) == 0 })
	return held, nil
}

// ofExplanation are the profiles of an explained node.
func ofExplanation(e api.ProfileExplanation) api.ProfileNode {
	n := api.ProfileNode{Node: e.Node, State: e.Label}
	for _, p := range e.Profiles {
		n.Profiles = append(n.Profiles, api.NodeProfile{Profile: p.Profile, Unknown: p.Unknown, State: p.State, Since: p.Since, Busy: p.Busy})
	}
	return n
}
