package plan

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

const (
	// listTimeout bounds the listing of nodes.
	listTimeout = 30 * time.Second
	// podsAtOnce bounds the nodes whose pods are counted together.
	podsAtOnce = 8
	// maxMissing bounds the missing names that are listed.
	maxMissing = 20
)

// choice are the nodes that a plan matches now, as far as this machine can see the cluster.
type choice struct {
	// known: Kubernetes was asked; without it nodes are those that the plan names.
	known bool
	nodes []plan.Facts
	reach plan.Reach
	// labels are those of all nodes of the cluster, by name; nil if Kubernetes was not asked.
	labels map[string]map[string]string
	// unspared are names to be left alone that no node has.
	unspared []string
	// why says why Kubernetes was not asked.
	why error
}

// choose finds the nodes that a plan matches. Where Kubernetes does not answer, it knows those that are named.
func choose(ctx context.Context, a *invocation.App, p plan.Plan) (choice, error) {
	matches, err := p.Matcher()
	if err != nil {
		return choice{}, exit.UsageError("%w", err)
	}
	k, err := a.Nodes(listTimeout)
	var all []invocation.Node
	if err == nil {
		all, err = k.List(ctx, "")
	}
	if err != nil {
		c := choice{why: err}
		for _, name := range p.Nodes {
			if matches(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}) {
				c.nodes = append(c.nodes, plan.Facts{Name: name})
			}
		}
		return c, nil
	}
	return match(p, matches, all), nil
}

// match looks for the plan's nodes among those of the cluster.
func match(p plan.Plan, matches func(*corev1.Node) bool, all []invocation.Node) choice {
	c := choice{known: true, reach: plan.Reach{All: len(all)}, labels: make(map[string]map[string]string, len(all))}
	there := map[string]bool{}
	for _, n := range all {
		there[n.Name], c.labels[n.Name] = true, n.Labels
		matching := matches(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}})
		if n.ControlPlane() {
			c.reach.ControlPlanes++
		}
		if !matching {
			continue
		}
		c.reach.Matching++
		if n.ControlPlane() {
			c.reach.MatchingControlPlane++
		}
		c.nodes = append(c.nodes, plan.Facts{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone]})
	}
	for _, name := range p.Nodes {
		if there[name] {
			continue
		}
		if len(c.reach.Missing) == maxMissing {
			c.reach.MoreMissing++
			continue
		}
		c.reach.Missing = append(c.reach.Missing, name)
	}
	for _, name := range p.Exclude {
		if !there[name] {
			c.unspared = append(c.unspared, name)
		}
	}
	return c
}

// countPods counts the pods of each node that a drain would move.
func (c *choice) countPods(ctx context.Context, a *invocation.App) error {
	k, err := a.Nodes(listTimeout)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(podsAtOnce)
	for i := range c.nodes {
		group.Go(func() (err error) {
			c.nodes[i].Pods, err = k.PodsToMove(ctx, c.nodes[i].Name)
			return err
		})
	}
	return group.Wait()
}

func (c *choice) names() []string {
	return terminal.NamesOf(c.nodes, func(n plan.Facts) string { return n.Name })
}

func chosenBy(p plan.Plan) string {
	switch {
	case p.All:
		return "all nodes"
	case p.Selector != "":
		return fmt.Sprintf("the nodes that match %q", p.Selector)
	case p.NodeSelector != nil:
		return "the nodes of its nodeSelector"
	default:
		return number.Of(len(p.Nodes), "node")
	}
}

// has refuses a plan that would end at once, for nothing matches. Names of nodes are checked elsewhere.
func (c *choice) has(p plan.Plan) error {
	if !c.known || len(c.nodes) > 0 || len(p.Nodes) > 0 || p.Together() {
		return nil
	}
	return exit.Hint(exit.UsageError("the plan would have no node (%s): nothing was started", chosenBy(p)), `"kubectl get nodes --show-labels" shows what there is.`)
}

func pace(p plan.Plan) string {
	if p.Together() {
		return fmt.Sprintf("all at once from stage %s", p.Stage)
	}
	return fmt.Sprintf("%s at a time by %s", p.Strategy.MaxParallel, p.Strategy.Order)
}

func announce(w io.Writer, name string, p plan.Plan, c choice) {
	over := chosenBy(p)
	if c.known || len(c.nodes) > 0 {
		over = number.Of(len(c.nodes), "node")
	}
	fmt.Fprintf(w, "Plan %s over %s, %s", name, over, pace(p))
	if names := c.names(); len(names) > 0 {
		fmt.Fprintf(w, ": %s", terminal.SomeOf(names, 10))
	}
	fmt.Fprintln(w)
	for _, warning := range c.warnings(p) {
		fmt.Fprintf(w, "Warning: %s\n", warning)
	}
}

// warnings say what somebody may not have meant.
func (c *choice) warnings(p plan.Plan) []string {
	if c.known {
		warnings := c.reach.Warnings()
		switch {
		case len(c.nodes) > 0:
		case p.Together():
			warnings = append(warnings, "no node matches now; those that come to match join")
		default:
			warnings = append(warnings, "no node matches now, so that the plan would end at once")
		}
		if len(c.unspared) > 0 {
			warnings = append(warnings, "exclude: there are no nodes of these names: "+terminal.SomeOf(c.unspared, maxMissing))
		}
		return warnings
	}
	why, _, _ := strings.Cut(c.why.Error(), "\n")
	warnings := []string{"Kubernetes was not asked, which nodes match is not known here: " + why}
	if p.All {
		warnings = append(warnings, "these are all nodes of the cluster, control-plane nodes included")
	}
	return warnings
}
