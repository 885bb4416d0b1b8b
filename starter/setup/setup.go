// Package setup is the command that looks at what Drydock needs of Temporal and of Kubernetes, and makes what is missing.
package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type options struct {
	app            *invocation.App
	output         terminal.Output
	apply, print   bool
	skipKubernetes bool
	retention      time.Duration
	config, as     string
	with           []string
}

// New is drydock setup.
func New(a *invocation.App) *cobra.Command {
	o := &options{app: a}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Show what Drydock needs of Temporal and Kubernetes, and make what is missing",
		Long: `Look at what Drydock needs before its workers can start: that Temporal is reachable, the namespace with its retention and
search attributes, schedules for recurring plans, the Nexus endpoint that --config names; and, where a kubeconfig is given, that Kubernetes is reachable and what the
worker's account may do. It says what is there, what is missing, and what would make it. Nothing is changed without --apply.

Permissions are asked for (SelfSubjectAccessReview) as the kubeconfig's account. That is the worker's where this is run with
the worker's kubeconfig; --as asks as another account, ` + kubernetes.Account + ` for the one of the
manifests in ` + kubernetes.Folder + `, and needs the right to impersonate it. What any maintenance needs has to be
granted, and what the worker's configuration (--config) makes use of; --with names further parts of the manifests.

With --apply it creates the namespace, raises a retention that is too short (it is never lowered), registers search
attributes, creates the Nexus endpoint, and applies the manifests of permissions that are missing, as yourself. Once more it changes nothing. --print
prints the commands of Temporal's and Kubernetes' own tools instead, for those who may run them. Temporal Cloud makes namespaces and
search attributes by its own API: there the commands are those of tcld.

Exit code 0: nothing is missing (any more); 1: something is, or could not be found out; 2: usage. With --print 0 says that the
commands printed make all that is missing.`,
		Example: `  drydock setup --namespace maintenance
  drydock setup --namespace maintenance --apply
  drydock setup --config worker.yaml --as ` + kubernetes.Account + `
  drydock setup --namespace maintenance --print
  drydock setup -o json | jq -r '.items[] | select(.state == "missing") | .text'`,
		Args: invocation.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.Register(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.apply, "apply", false, "make what is missing")
	f.BoolVar(&o.print, "print", false, "print only the commands that make what is missing")
	invocation.DurationVar(f, &o.retention, "retention", setup.DefaultRetention, "how long histories are to be kept at least")
	f.StringVar(&o.config, "config", "", "the worker's configuration, which says what permissions it needs (env "+invocation.EnvConfig+")")
	f.StringVar(&o.as, "as", "", "ask for the permissions of this account, by impersonating it")
	f.StringSliceVar(&o.with, "with", nil, "parts of the permissions that are wanted besides, such as volumes or delete-pods")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("with", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return partNames(), cobra.ShellCompDirectiveNoFileComp
	})
	f.BoolVar(&o.skipKubernetes, "skip-kubernetes", false, "do not look at Kubernetes")
	return cmd
}

func partNames() []string {
	parts, err := kubernetes.Parts()
	if err != nil {
		return nil
	}
	return terminal.NamesOf(parts, func(part kubernetes.Part) string { return part.Name })
}

func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := o.site()
	if err != nil {
		return err
	}
	defer s.close()
	report := setup.Decide(s.wanted, s.look(ctx))
	if o.apply && len(report.Fixes()) > 0 {
		report = fix(ctx, s, s.wanted, report, o.app.Messages(&o.output))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.print {
		terminal.Show(o.app.Stdout, views.SetupCommands(report))
		return exit.Unless(len(report.Uncommanded()) == 0, exit.Failed)
	}
	return cmp.Or(o.output.Write(o.app.Stdout, report, views.Setup(report, o.apply, o.app.Name)), exit.Unless(report.Ready, exit.Failed))
}

func (o *options) check() error {
	switch {
	case o.apply && o.print:
		return exit.UsageError("--apply and --print: one of them")
	case o.print && !o.output.Table():
		return exit.UsageError("--print prints commands; with --output %s they are in what is printed without it", o.output.Format)
	case o.retention < setup.DefaultRetention:
		return exit.UsageError("--retention %s: want at least 30d: histories are the audit trail", period.InDays(o.retention))
	case o.skipKubernetes && (o.as != "" || len(o.with) > 0):
		return exit.UsageError("--as and --with ask Kubernetes: leave out --skip-kubernetes")
	}
	return nil
}

// worker is what of a worker's configuration says where it works.
type worker struct {
	Cluster    string `json:"cluster"`
	TaskQueue  string `json:"taskQueue"`
	Kubernetes struct {
		Kubeconfig string `json:"kubeconfig"`
		Context    string `json:"context"`
	} `json:"kubernetes"`
	Nexus struct {
		Endpoint string `json:"endpoint"`
	} `json:"nexus"`
}

// readWorker reads what a worker's configuration says of where it works, and returns it whole too; nothing where none is named.
func (o *options) readWorker() (configured worker, config []byte, err error) {
	path := cmp.Or(o.config, o.app.Env.Get(invocation.EnvConfig))
	if path == "" {
		return worker{}, nil, nil
	}
	document, err := input.ReadObject(path, o.app.Stdin)
	if err != nil {
		return worker{}, nil, err
	}
	if config, err = json.Marshal(document); err == nil {
		err = json.Unmarshal(config, &configured)
	}
	if err == nil {
		err = spec.ClusterName(configured.Cluster)
	}
	if err != nil {
		return worker{}, nil, exit.UsageError("%s: %w", path, err)
	}
	return configured, config, nil
}

// site is what is to be looked at, without having asked anybody yet.
func (o *options) site() (*site, error) {
	address, namespace, err := o.app.Temporal()
	if err != nil {
		return nil, err
	}
	cluster, err := o.app.ClusterName()
	if err != nil {
		return nil, err
	}
	configured, config, err := o.readWorker()
	if err != nil {
		return nil, err
	}
	manifests, err := kubernetes.Parts()
	if err != nil {
		return nil, err
	}
	parts, err := setup.Require(partsOf(manifests), config, o.with)
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	cluster = cmp.Or(cluster, configured.Cluster)
	queue := cmp.Or(o.app.TaskQueue(), configured.TaskQueue, api.DefaultTaskQueue)
	s := &site{
		app: o.app, address: address, namespace: namespace, cluster: cluster, manifests: manifests,
		wanted: wanted(o.retention, parts, api.TaskQueue(cluster, queue)),
	}
	s.wanted.Endpoint = configured.Nexus.Endpoint
	if !o.skipKubernetes {
		s.kubernetes, err = openCluster(o.app, invocation.Cluster(configured.Kubernetes), o.as, len(o.with) > 0)
	}
	return s, err
}

// wanted is what has to be there for the workers of a task queue.
func wanted(retention time.Duration, parts []setup.Part, queue string) setup.Wanted {
	w := setup.Wanted{Retention: retention, Parts: parts, Account: kubernetes.Account, Queue: queue}
	for _, attribute := range api.SearchAttributes {
		w.Attributes = append(w.Attributes, attribute.Name)
	}
	return w
}
