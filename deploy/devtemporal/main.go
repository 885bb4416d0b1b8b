// Command devtemporal is a real Temporal server, all four services and the web UI in one process, with SQLite behind
// it: for tests, the demo and the benchmarks of Drydock, never for production. Its flags are those of the Temporal
// command line's `temporal server start-dev`.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "devtemporal:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "devtemporal", Short: "A Temporal server in one process, for development",
		SilenceUsage: true, SilenceErrors: true,
	}
	group := &cobra.Command{Use: "server", Short: "Run a Temporal server"}
	group.AddCommand(startDev())
	root.AddCommand(group)
	return root
}

// options are the flags of start-dev. A port that is 0 is chosen by the system.
type options struct {
	ip, uiIP                             string
	port, metricsPort, uiPort            int
	headless, nexus                      bool
	database, namespace, logLevel        string
	searchAttributes, dynamicConfigValue []string
	uiNames                              []string
	access                               access
}

func startDev() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "start-dev",
		Short: "Run a server with its UI until SIGINT or SIGTERM",
		Long: "Run a Temporal server with its UI until SIGINT or SIGTERM.\n\n" +
			"Without --db-filename its state ends with the process.",
		Example: "  devtemporal server start-dev --db-filename temporal.db --search-attribute DrydockNode=Keyword",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.ip, "ip", "127.0.0.1", "address of the server")
	flags.IntVarP(&o.port, "port", "p", 7233, "port of the gRPC API")
	flags.IntVar(&o.metricsPort, "metrics-port", 0, "port of /metrics (default a free one)")
	flags.StringVar(&o.uiIP, "ui-ip", "", "address of the web UI (default --ip)")
	flags.IntVar(&o.uiPort, "ui-port", 0, "port of the web UI (default --port + 1000)")
	flags.StringArrayVar(&o.uiNames, "ui-name", nil, "name that browsers may call the web UI by, besides localhost and --ui-ip; repeatable")
	flags.BoolVar(&o.headless, "headless", false, "no web UI")
	flags.BoolVar(&o.nexus, "nexus", false, "deliver Nexus operations, for which the server has its HTTP API too, on a free port")
	flags.StringVarP(&o.database, "db-filename", "f", "", "SQLite file that keeps the state")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace to create")
	flags.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	flags.StringArrayVar(&o.searchAttributes, "search-attribute", nil, "search attribute to register, NAME=TYPE, where the namespace is new; repeatable")
	flags.StringArrayVar(&o.dynamicConfigValue, "dynamic-config-value", nil, "dynamic configuration, KEY=JSON; repeatable")
	o.access.register(c)
	return c
}

// check refuses bad flags and fills in those that follow from others.
func (o *options) check() error {
	if net.ParseIP(o.ip) == nil {
		return fmt.Errorf("--ip %q: an IP address is wanted, such as 127.0.0.1", o.ip)
	}
	if o.uiIP == "" {
		o.uiIP = o.ip
	}
	if net.ParseIP(o.uiIP) == nil {
		return fmt.Errorf("--ui-ip %q: an IP address is wanted, such as 127.0.0.1", o.uiIP)
	}
	if o.port < 1 || o.port > 65535 {
		return fmt.Errorf("--port %d: 1 to 65535 are ports", o.port)
	}
	if o.uiPort == 0 {
		o.uiPort = o.port + 1000
	}
	return o.access.check()
}

// attributes are the search attributes with their types.
func (o *options) attributes() (map[string]enumspb.IndexedValueType, error) {
	types := map[string]enumspb.IndexedValueType{}
	for _, flag := range o.searchAttributes {
		name, text, _ := strings.Cut(flag, "=")
		kind, err := enumspb.IndexedValueTypeFromString(text)
		if name == "" || err != nil {
			return nil, fmt.Errorf("--search-attribute %q: NAME=TYPE is wanted, such as DrydockNode=Keyword", flag)
		}
		types[name] = kind
	}
	return types, nil
}
