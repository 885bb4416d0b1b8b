package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type explainOptions struct {
	app    *invocation.App
	output terminal.Output
	check  string
}

func newExplain(a *invocation.App) *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:   "explain NODE",
		Short: "Say what is wrong with a node, what blocks its remediation, and what comes next",
		Long: `Say of a node which condition it has and since when, whether it counts as ill yet, what blocks its remediation, which step is at
work, and what comes next and when: by each health check that selects it. Kubernetes says which do; if it does not answer, only the checks that
know the node as unhealthy are shown.`,
		Example: `  drydock health explain worker-07
  drydock health explain worker-07 -o json | jq -r '.[].next'`,
		Args: invocation.OneNode,
		RunE: a.Connected(o.run),
	}
	o.output.Register(cmd)
	cmd.Flags().StringVar(&o.check, "check", "", "ask this health check alone")
	return cmd
}

// explained is what a check says of a node, and which nodes it selects.
type explained struct {
	api.CheckExplanation
	selector metav1.LabelSelector
}

// underRemediation are the states of a node that has a remediation.
var underRemediation = []string{health.NodeRemediating, health.NodeRecovered, health.NodeRemoving}

func (e explained) remediates() bool { return e.Found && slices.Contains(underRemediation, e.State) }

// concerned reports whether the check has anything to do with the node.
func (e explained) concerned() bool { return e.Found || e.Selected != nil && *e.Selected }

func (o *explainOptions) run(ctx context.Context, c *invocation.Connection, args []string) error {
	node := args[0]
	all, err := ask(ctx, c, node)
	if err != nil {
		return err
	}
	if o.check != "" {
		all = slices.DeleteFunc(all, func(e explained) bool { return e.Check != o.check })
		if len(all) == 0 {
			return explain(c, o.check, &client.NoneError{What: "health check " + o.check})
		}
	}
	asked, missing := o.selected(ctx, node, all)
	known := []api.CheckExplanation{}
	for _, one := range all {
		if one.concerned() {
			known = append(known, one.CheckExplanation)
		}
	}
	if len(known) == 0 && missing != nil {
		return missing
	}
	if o.output.Table() && len(known) == 0 {
		fmt.Fprintln(o.app.Stdout, nobody(node, all, asked))
		return nil
	}
	explanations := make([]document.Document, len(known))
	for i, one := range known {
		explanations[i] = views.CheckExplanation(one, views.At(c.Clock()))
	}
	return o.output.Write(o.app.Stdout, known, explanations...)
}

// askedAtOnce bounds the checks that are asked together.
const askedAtOnce = 8

// ask asks every check that runs for a node. One that does not answer keeps no other from it, unless none does.
func ask(ctx context.Context, c *invocation.Connection, node string) ([]explained, error) {
	runs, err := client.ListHealthChecks(ctx, c.Client, true)
	if err != nil {
		return nil, c.Explain(err)
	}
	if len(runs) == 0 {
		return nil, exit.Hint(fmt.Errorf("no health check runs"), `Checks are in the worker's configuration (healthChecks), or started with "%s health start --file FILE".`, c.Program)
	}
	answered, failures := invocation.Each(runs, askedAtOnce, func(run client.HealthCheckRun) (explained, error) {
		return askOne(ctx, client.HealthCheckOf(c.Client, run.Name), node)
	})
	if len(answered) == 0 {
		return nil, explain(c, runs[0].Name, failures[0])
	}
	return answered, nil
}

func askOne(ctx context.Context, h *client.HealthCheck, node string) (explained, error) {
	status, err := h.Status(ctx, api.HealthStatusRequest{Limit: 1})
	if err != nil {
		return explained{}, err
	}
	said, err := h.Explain(ctx, node)
	return explained{
		api.CheckExplanation{Check: h.Name, Phase: status.Phase, Blocked: status.Blocked, HealthExplanation: said}, status.Spec.Selector,
	}, err
}

// kubernetesWithin bounds the question for a node's labels, which is a courtesy.
const kubernetesWithin = 3 * time.Second

// selected finds out which checks select the node. Asked is false if Kubernetes does not answer; missing says that there is
// no such node.
func (o *explainOptions) selected(ctx context.Context, node string, all []explained) (asked bool, missing error) {
	k, err := o.app.Nodes(kubernetesWithin)
	if err != nil {
		return false, nil //nolint:nilerr // without Kubernetes the checks' own words are shown
	}
	ctx, cancel := context.WithTimeout(ctx, kubernetesWithin)
	defer cancel()
	n, missing, err := k.Find(ctx, node)
	if err != nil {
		return false, missing
	}
	for i := range all {
		selector, err := metav1.LabelSelectorAsSelector(&all[i].selector)
		if err == nil {
			matches := selector.Matches(labels.Set(n.Labels))
			all[i].Selected = &matches
			if matches && all[i].State == health.NodeHealthy {
				all[i].Summary = "it has none of the check's unhealthy conditions"
			}
		}
	}
	return true, nil
}

// nobody says that no check has anything to do with a node.
func nobody(node string, all []explained, asked bool) string {
	checks := strings.Join(terminal.NamesOf(all, func(e explained) string { return e.Check }), ", ")
	if asked {
		return fmt.Sprintf("No health check selects %s: there is %s.", node, checks)
	}
	return fmt.Sprintf("%s is healthy for %s, or not selected: Kubernetes could not be asked which.", node, checks)
}
