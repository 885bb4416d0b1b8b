// Package tracing sends traces of maintenances to an OpenTelemetry collector, where the environment asks for it by the variables that
// OpenTelemetry defines: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
//
// A trace is one maintenance, from the request for it to the release of its node: the spans are those of the Temporal SDK's interceptor.
// Workflows that go on for weeks, as the scheduler or a plan, are in no trace: no backend keeps one that never ends.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"

	"drydock.dev/drydock/config/temporalenv"
)

// The variables that this package reads. The exporters and the SDK read the others: endpoint, headers, certificates, sampler, batches.
const (
	disabled       = "OTEL_SDK_DISABLED"
	exporter       = "OTEL_TRACES_EXPORTER"
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// stopTimeout is how long the last spans may take to be sent. A process that ends must not wait for a collector that is away.
const stopTimeout = 3 * time.Second

// Traces are sent until they are stopped. The nil Traces sends nothing.
type Traces struct {
	provider    *sdktrace.TracerProvider
	interceptor interceptor.ClientInterceptor
}

// Start begins to send the traces that the environment asks for, and returns nil where it asks for none. Version may be empty. Report is
// called with each error of sending. An error that is returned names the variable.
func Start(ctx context.Context, env temporalenv.Environment, program, version string, report func(error)) (*Traces, error) {
	if asked, err := isAsked(env); !asked || err != nil {
		return nil, err
	}
	client, err := newClient(env)
	if err != nil {
		return nil, err
	}
	own := []attribute.KeyValue{semconv.ServiceName(program)}
	if version != "" {
		own = append(own, semconv.ServiceVersion(version))
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv()) // the user's come last, and hold
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES or OTEL_SERVICE_NAME: %w", err)
	}
	spans, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(report))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{}))
	return newTraces(provider, version)
}

func newTraces(provider *sdktrace.TracerProvider, version string) (*Traces, error) {
	t, err := newTracer(provider, version)
	if err != nil {
		return nil, err
	}
	return &Traces{provider: provider, interceptor: interceptor.NewTracingInterceptor(t)}, nil
}

// isAsked reports whether the environment asks for traces: it names an endpoint, or an exporter other than none.
func isAsked(env temporalenv.Environment) (bool, error) {
	if value(env, disabled) == "true" {
		return false, nil
	}
	switch name := value(env, exporter); name {
	case "":
		return value(env, endpoint) != "" || value(env, tracesEndpoint) != "", nil
	case "none":
		return false, nil
	case "otlp":
		return true, nil
	default:
		return false, fmt.Errorf("%s is %q: otlp or none", exporter, name)
	}
}

// newClient is the client of the protocol that the environment names. HTTP is OpenTelemetry's default.
func newClient(env temporalenv.Environment) (otlptrace.Client, error) {
	variable := tracesProtocol
	if value(env, variable) == "" {
		variable = protocol
	}
	switch name := value(env, variable); name {
	case "", "http/protobuf":
		return otlptracehttp.NewClient(), nil
	case "grpc":
		return otlptracegrpc.NewClient(), nil
	default:
		return nil, fmt.Errorf("%s is %q: http/protobuf or grpc", variable, name)
	}
}

func value(env temporalenv.Environment, name string) string {
	v, _ := env.LookupEnv(name)
	return v
}

// Trace has the calls of a client traced, and the workflows and activities of workers that use it.
func (t *Traces) Trace(options *client.Options) {
	if t != nil {
		options.Interceptors = append(options.Interceptors, t.interceptor)
	}
}

// Stop sends what is left, and gives up after a few seconds.
func (t *Traces) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err) // as the errors of sending before
	}
}

// OfProcess are the traces of a process that runs for long. What cannot be sent goes to its log.
func OfProcess(ctx context.Context, program, version string, logger *slog.Logger) (*Traces, error) {
	return Start(ctx, envconfig.EnvLookupOS, program, version, func(err error) { logger.Warn("traces are not sent", "error", err) })
}
