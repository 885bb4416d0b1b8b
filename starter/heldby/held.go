// Package heldby says which nodes profiles hold in maintenance.
package heldby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/overview"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// shown bounds the nodes that are listed.
const shown = 20

// evaluator knows what becomes of nodes by their profiles: a client does, which asks workers.
type evaluator interface {
	// RunsProfiles reports whether nodes are evaluated at all.
	RunsProfiles(ctx context.Context) (bool, error)
	ProfileReport(ctx context.Context, in api.ProfileReportInput, within time.Duration) (api.ProfileReport, error)
}

// Profiles are the nodes that profiles hold in maintenance, the first of them, or of a node itself alone. Those of maintenances that
// profiles have begun are left out: they are listed as such. What cannot be found out is a warning.
func Profiles(ctx context.Context, e evaluator, node string, begun []api.MaintenanceSummary, warnings io.Writer) api.HeldByProfiles {
	held, err := heldByProfiles(ctx, e, node, begun)
	warn(ctx, err, warnings)
	return held
}

// warn says why it is not known what profiles hold.
func warn(ctx context.Context, unknown error, warnings io.Writer) {
	if unknown != nil && ctx.Err() == nil && !isNoNode(unknown) {
		why := terminal.OneLine(invocation.WithoutKeys(unknown).Error())
		fmt.Fprintf(warnings, "Warning: it is not known which nodes profiles hold in maintenance: %s\n", why)
	}
}

// isNoNode reports whether the worker knows that there is no such node: then no profile holds it.
func isNoNode(err error) bool {
	var failed *client.FailedError
	return errors.As(err, &failed) && failed.Kind == api.ErrorNodeNotFound
}

// Holding is which profiles hold a node in maintenance, asked for once.
type Holding struct {
	// Node has those profiles; nil if there are none, or none are known.
	Node *api.ProfileNode
	name string
	// unknown is why it could not be found out.
	unknown error
}

// HoldingOf asks about a node. What cannot be found out is a warning.
func HoldingOf(ctx context.Context, e evaluator, node string, warnings io.Writer) Holding {
	h := holdingOf(ctx, e, node)
	warn(ctx, h.unknown, warnings)
	return h
}

func holdingOf(ctx context.Context, e evaluator, node string) Holding {
	held, err := heldByProfiles(ctx, e, node, nil)
	h := Holding{name: node, unknown: err}
	if len(held.Nodes) > 0 {
		h.Node = &held.Nodes[0]
	}
	return h
}

// Of are those of some nodes that profiles hold in maintenance, as the nodes themselves say. It asks no worker, and finds none where it
// cannot find out whether nodes are evaluated here.
func Of(ctx context.Context, e evaluator, nodes []invocation.Node) (held []api.ProfileNode) {
	for _, n := range nodes {
		data, err := state.Read(n.Annotations[state.DataAnnotation])
		if err != nil {
			continue
		}
		one := api.ProfileNode{Node: n.Name, State: state.Maintenance}
		for _, name := range state.Profiles(n.Labels) {
			if p := data.Profiles[name]; p.Current == state.Maintenance {
				one.Profiles = append(one.Profiles, api.NodeProfile{Profile: name, State: p.Current, Since: p.Transition})
			}
		}
		if len(one.Profiles) > 0 {
			held = append(held, one)
		}
	}
	if len(held) == 0 {
		return nil
	}
	if runs, err := e.RunsProfiles(ctx); err != nil || !runs {
		return nil
	}
	return held
}

// WhyNone is an error with what is known of the node in place of a maintenance, where the error is that none of the node runs: that a
// profile holds it, or that there is no such node.
func WhyNone(ctx context.Context, e evaluator, program string, err error) error {
	var none *client.NotFoundError
	if !errors.As(err, &none) || len(none.Others) > 0 {
		return err
	}
	return holdingOf(ctx, e, none.Node).Instead(err, program)
}

// Instead is the error that no maintenance of the node runs, with what is known of the node in place of one.
func (h Holding) Instead(err error, program string) error {
	switch {
	case isNoNode(h.unknown):
		return fmt.Errorf("there is no node %s: %w", h.name, err)
	case h.Node == nil:
		return err
	}
	names := terminal.NamesOf(h.Node.Profiles, func(p api.NodeProfile) string { return "profile " + p.Profile })
	said, _, _ := strings.Cut(err.Error(), "\n") // the hint is another one now
	err = exit.InWords(fmt.Sprintf("%s; the node is in maintenance by %s", said, strings.Join(names, ", ")), err)
	return exit.Hint(err, `"%s profile explain %s" says what moves it on.`, program, h.name)
}

func heldByProfiles(ctx context.Context, e evaluator, node string, begun []api.MaintenanceSummary) (held api.HeldByProfiles, err error) {
	if runs, err := e.RunsProfiles(ctx); err != nil || !runs {
		return held, err
	}
	in := api.ProfileReportInput{State: state.Maintenance, Limit: shown}
	if node != "" {
		in = api.ProfileReportInput{Node: node}
	}
	report, err := e.ProfileReport(ctx, in, overview.Within)
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
