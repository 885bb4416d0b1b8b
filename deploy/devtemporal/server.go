package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"

	"drydock.dev/drydock/deploy/devtemporal/web"
)

const clusterName = "active"

// queueReads are how often a second the one shard may read its queue of what is to be done at once.
const queueReads = 1000

// services are the parts of a Temporal server; the first is the one that clients talk to. Where it asks who calls, the server's own
// parts and the UI have another one.
func (o options) services() []primitives.ServiceName {
	all := []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService}
	if o.access.restricted() {
		all = append(all, primitives.InternalFrontendService)
	}
	return all
}

// run serves until ctx is done.
func run(ctx context.Context, o options, out io.Writer) error {
	ports, err := o.ports()
	if err != nil {
		return err
	}
	database, err := o.prepareDatabase()
	if err != nil {
		return err
	}
	dynamic, err := o.dynamic()
	if err != nil {
		return err
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	var names []string
	for _, s := range o.services() {
		hosts[s] = static.SingleLocalHost(address(o.ip, ports[s]))
		names = append(names, string(s))
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(o.config(database, ports)),
		temporal.ForServices(names),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Stdout: true, Level: o.logLevel, Format: "console"}))),
		temporal.WithAuthorizer(o.access.authorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return o.access.claimMapper() }),
		temporal.WithDynamicConfigClient(dynamic),
	)
	if err != nil {
		return fmt.Errorf("preparing the server: %w", err)
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	failed := make(chan error, 1)
	if !o.headless {
		ui, err := o.serveUI(ctx, ports, failed)
		if err != nil {
			return errors.Join(err, server.Stop())
		}
		defer ui.Close()
	}
	fmt.Fprintf(out, "Temporal server: %s\n", address(o.ip, o.port))
	if !o.headless {
		fmt.Fprintf(out, "Temporal UI: http://%s\n", address(o.uiIP, o.uiPort))
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("serving the UI: %w", err)
	}
	return errors.Join(err, server.Stop())
}

// httpAPI stands for the frontend's HTTP API among the ports.
const httpAPI = "http"

// ports are those of the services, and under "metrics" that of /metrics. The frontend's HTTP API has one only for Nexus: any page that a
// browser of this machine shows could call it.
func (o options) ports() (map[primitives.ServiceName]int, error) {
	ports := map[primitives.ServiceName]int{primitives.FrontendService: o.port, "metrics": o.metricsPort}
	wanted := append([]primitives.ServiceName{"metrics"}, o.services()...)
	if o.nexus {
		wanted = append(wanted, httpAPI)
	}
	for _, name := range wanted {
		if ports[name] != 0 {
			continue
		}
		// All are held until the last is found, so that none is found twice.
		l, err := net.Listen("tcp", address(o.ip, 0))
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close()
		ports[name] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// prepareDatabase sets up the schema and the namespace where they are not there.
func (o options) prepareDatabase() (*config.SQL, error) {
	sql := &config.SQL{PluginName: sqlite.PluginName, ConnectAttributes: map[string]string{}}
	if o.database == "" {
		sql.DatabaseName = "drydock"
		sql.ConnectAttributes["mode"], sql.ConnectAttributes["cache"] = "memory", "shared"
	} else {
		sql.DatabaseName = o.database
		sql.ConnectAttributes["mode"] = "rwc"
		if _, err := os.Stat(o.database); errors.Is(err, fs.ErrNotExist) {
			if err := schema.SetupSchema(sql); err != nil {
				return nil, fmt.Errorf("setting up %s: %w", o.database, err)
			}
		} else if err != nil {
			return nil, err
		}
	}
	attributes, err := o.attributes()
	if err != nil {
		return nil, err
	}
	namespace, err := schema.NewNamespaceConfig(clusterName, o.namespace, false, attributes)
	if err == nil {
		err = schema.CreateNamespaces(sql, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("creating namespace %s: %w", o.namespace, err)
	}
	return sql, nil
}

func (o options) config(database *config.SQL, ports map[primitives.ServiceName]int) *config.Config {
	frontend := address(o.ip, o.port)
	c := &config.Config{
		Global: config.Global{TLS: o.access.tls(), Metrics: &metrics.Config{
			Prometheus: &metrics.PrometheusConfig{ListenAddress: address(o.ip, ports["metrics"]), HandlerPath: "/metrics"},
		}},
		Persistence: config.Persistence{
			DefaultStore: sqlite.PluginName, VisibilityStore: sqlite.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{sqlite.PluginName: {SQL: database}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: frontend},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
		}},
		Services: map[string]config.Service{},
	}
	if o.access.restricted() {
		c.PublicClient = config.PublicClient{} // the internal frontend is found among the services
	}
	delivers := primitives.FrontendService // of Nexus operations, to the server's own parts
	if o.access.restricted() {
		delivers = primitives.InternalFrontendService
	}
	for _, s := range o.services() {
		rpc := config.RPC{GRPCPort: ports[s], BindOnIP: o.ip}
		if s == delivers {
			rpc.HTTPPort = ports[httpAPI]
		}
		c.Services[string(s)] = config.Service{RPC: rpc}
	}
	return c
}

// dynamic is the configuration that suits one process and few task queues, under what the flags say.
func (o options) dynamic() (dynamicconfig.StaticClient, error) {
	values := dynamicconfig.StaticClient{
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// A shard reads each of its queues at most 20 times a second. A server has hundreds of shards; one alone would have
		// every signal and every workflow task wait up to 50 ms. A timer may wait: each task sets some, and most never fire.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): queueReads,
		// A new search attribute is usable at once.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
	}
	for _, flag := range o.dynamicConfigValue {
		key, text, _ := strings.Cut(flag, "=")
		var value any
		if err := json.Unmarshal([]byte(text), &value); key == "" || err != nil {
			return nil, fmt.Errorf("--dynamic-config-value %q: KEY=JSON is wanted, such as limit.maxIDLength=500", flag)
		}
		values[dynamicconfig.MakeKey(key)] = value
	}
	return values, nil
}

// What a client of the UI may take.
const (
	readHeaderWithin = 10 * time.Second
	idleFor          = 2 * time.Minute
)

// serveUI serves the UI, and says on failed where it ends by itself.
func (o options) serveUI(ctx context.Context, ports map[primitives.ServiceName]int, failed chan<- error) (*http.Server, error) {
	asks := primitives.FrontendService
	if o.access.restricted() {
		asks = primitives.InternalFrontendService
	}
	handler, err := web.Handler(web.Options{
		Temporal: address(o.ip, ports[asks]), Namespace: o.namespace, Names: append([]string{o.uiIP}, o.uiNames...),
	})
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(o.uiIP, o.uiPort))
	if err != nil {
		return nil, fmt.Errorf("listening for the UI: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderWithin, IdleTimeout: idleFor}
	go func() { failed <- server.Serve(listener) }()
	return server, nil
}

func address(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }
