package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/kep/objects"
)

// Version is the release, set by the linker.
var Version = "dev"

const long = `drydock-bridge mirrors Kubernetes objects to Drydock's workflows, and the workflows back: a NodeMaintenance,
MaintenancePlan or HealthCheck of drydock.dev starts what its spec asks for, and its status shows it. It needs rights on these objects
and on Temporal, and none on nodes or pods: the workers maintain nodes. Run one or more per cluster; one of them leads. By flags it
serves the objects of maintenance-operator, of PIKA, of medik8s' node-healthcheck-operator and of KEP-4212 too.

Temporal is found as by every other Temporal tool: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY,
TEMPORAL_TLS..., or a profile of the Temporal configuration file (TEMPORAL_PROFILE).
Kubernetes is found as by kubectl (KUBECONFIG), or inside a cluster by the pod's service account.

SIGINT and SIGTERM stop it; whatever changes meanwhile it sees when it starts again.`

// Main runs the command line; it returns the exit status.
func Main(ctx context.Context, args []string, stderr io.Writer) int {
	cmd := command(stderr)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "drydock-bridge:", err)
		var usage usageError
		if errors.As(err, &usage) {
			return 2
		}
		return 1
	}
	return 0
}

type usageError struct{ error }

func command(stderr io.Writer) *cobra.Command {
	var o Options
	level := "info"
	format := "text"
	cmd := &cobra.Command{
		Use:           "drydock-bridge",
		Short:         "Mirror Kubernetes objects to Drydock's workflows",
		Long:          long,
		Example:       "  drydock-bridge --cluster prod-1\n  drydock-bridge --leader-election=false --metrics 127.0.0.1:8082",
		Version:       Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var from slog.Level
			if err := from.UnmarshalText([]byte(level)); err != nil {
				return usageError{fmt.Errorf("--log-level: %q is not one of debug, info, warn, error", level)}
			}
			var handler slog.Handler
			switch format {
			case "text":
				handler = slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: from})
			case "json":
				handler = slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: from})
			default:
				return usageError{fmt.Errorf("--log-format: %q is neither text nor json", format)}
			}
			if err := errors.Join(o.MaintenanceOperator.Validate(), o.PIKA.Validate()); err != nil {
				return usageError{err}
			}
			o.Logger, o.Version = slog.New(handler), Version
			return Run(cmd.Context(), o)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.SetErr(stderr)
	flags := cmd.Flags()
	flags.StringVar(&o.Cluster, "cluster", os.Getenv("DRYDOCK_CLUSTER"), "name of the cluster, as in the workers' configuration [$DRYDOCK_CLUSTER]")
	flags.StringVar(&o.TaskQueue, "task-queue", cmp.Or(os.Getenv("DRYDOCK_TASK_QUEUE"), api.DefaultTaskQueue), "the workers' task queue, without the cluster [$DRYDOCK_TASK_QUEUE]")
	flags.StringVar(&o.Metrics, "metrics", "127.0.0.1:8082", "address that serves /metrics; 0 serves none")
	flags.StringVar(&o.Probes, "probes", "127.0.0.1:8083", "address that serves /healthz and /readyz; 0 serves none")
	flags.BoolVar(&o.LeaderElection, "leader-election", true, "work only while no other bridge of the cluster does, by a Lease")
	flags.StringVar(&o.LeaseNamespace, "lease-namespace", os.Getenv("POD_NAMESPACE"), "namespace of that Lease; inside a cluster that of the pod [$POD_NAMESPACE]")
	flags.BoolVar(&o.Approvals, "approvals", false, "let annotations approve and deny: install deploy/kubernetes/bridge/admission.yaml first, or anyone who may patch an object can approve it in any name")
	flags.StringVar(&o.MaintenanceOperator.Namespace, "maintenance-operator", "", "serve the objects of maintenance-operator in its place, from when it has stopped: the namespace it is installed in")
	flags.StringVar(&o.MaintenanceOperator.Input, "maintenance-operator-input", "", `what their maintenances do otherwise than maintenance-operator's, a JSON merge patch of the input: {"readyTimeout":"4h"}`)
	flags.StringVar(&o.NodeHealthCheck, "node-healthcheck", "", "serve medik8s' NodeHealthCheck objects in the place of their operator, from when it has stopped: the namespace it is installed in")
	flags.StringVar(&o.PIKA.Namespace, "pika", "", "serve the NotifyMaintenance objects of PIKA in its place, from when it has stopped: the namespace it is installed in")
	flags.DurationVar(&o.PIKA.SLA, "pika-sla", 0, "the time in which a node is to be empty, PIKA's slaPeriod: 24h; required with --pika")
	flags.StringVar(&o.PIKA.Input, "pika-input", "", `what their maintenances do otherwise, a JSON merge patch of the input: {"drain":{"mode":"evict"}} has Drydock drain the nodes`)
	flags.StringToStringVar(&o.PIKA.Channels, "pika-channel", nil, "TOPIC=CHANNEL: objects that name this topic of Amazon SNS (its ARN) notify this channel of the workers too, besides those of notify in --pika-input; repeatable")
	flags.BoolVar(&o.KEP, "kep", false, "serve the NodeMaintenance of KEP-4212 too, in the group "+objects.GroupVersion.Group)
	flags.StringVar(&level, "log-level", level, "what is logged: debug, info, warn or error")
	flags.StringVar(&format, "log-format", format, "how it is logged: text or json")
	return cmd
}
