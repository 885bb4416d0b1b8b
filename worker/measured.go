package worker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/worker/metrics"
)

// latencies are the bounds of the SDK's histograms, in seconds: requests take milliseconds, workflows days.
var latencies = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600, 24 * 3600}

// maxSeries bounds the series of each of the SDK's metrics: their labels have types of workflows, which everybody who starts a workflow
// on the worker's queue chooses. The rest is one series with otel_metric_overflow="true".
const maxSeries = 1000

// ownMetrics registers the metrics of the process itself, and returns what the SDK and workflows measure by.
func ownMetrics(o Options, registry prometheus.Registerer) (client.MetricsHandler, error) {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics.Build(registry, o.Version)
	if err := metrics.NewWindows(registry, o.Config.Windows); err != nil {
		return nil, err
	}
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("preparing metrics: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter), metric.WithCardinalityLimit(maxSeries), metric.WithView(metric.NewView(
		metric.Instrument{Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: latencies}},
	)))
	sdk := opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: provider.Meter("temporal-sdk")})
	return metrics.Handler(registry, sdk, slices.Sorted(maps.Keys(o.Config.Channels))), nil
}

// stateMetrics are the options of the state's metrics: where it is read, and how often.
func stateMetrics(o Options, temporal client.Client, namespace string) metrics.Options {
	c := o.Config
	options := metrics.Options{
		Source: metrics.Source{
			Temporal: temporal, Namespace: namespace, Cluster: c.Cluster, TaskQueue: api.TaskQueue(c.Cluster, c.TaskQueue),
		},
		Every: c.Metrics.StateEvery.Std(), PhaseCounts: o.phaseCounts, Logger: o.Logger,
	}
	for _, group := range c.Scheduler.Groups {
		options.Groups = append(options.Groups, group.Name)
	}
	return options
}
