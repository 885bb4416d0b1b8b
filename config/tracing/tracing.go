// Package tracing sends traces of maintenances to an OpenTelemetry collector, where the environment asks for it by the variables that
// OpenTelemetry defines: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
//
// A trace is one maintenance, from the request for it to the release of its node: the spans are those of the Temporal SDK's interceptor.
// Workflows that go on for weeks, as the scheduler or a plan, are in no trace: no backend keeps one that never ends.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// The variables that this package reads. The exporters and the SDK read the others: headers, certificates, sampler, batches.
const (
	disabled       = "OTEL_SDK_DISABLED"
	exporter       = "OTEL_TRACES_EXPORTER"
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// Reporter is told why traces are not sent. It is called from several goroutines. The program works on without traces. The error names the variable that is wrong, and has none of the values, which may be secret.
type Reporter interface{ Untraced(why error) }

// Traces are sent until they are stopped. The nil Traces sends nothing.
type Traces struct {
	provider    *sdktrace.TracerProvider
	interceptor interceptor.ClientInterceptor
}

// Start begins to send the traces of a program that the environment asks for, and returns nil where it asks for none. Version may be empty.
func Start(ctx context.Context, program, version string, reporter Reporter) *Traces {
	if !isAsked() {
		return nil
	}
	t, err := start(ctx, program, version, reporter)
	if err != nil {
		reporter.Untraced(err)
		return nil
	}
	return t
}

// isAsked reports whether the environment asks for traces: it names an endpoint or an exporter, but not none.
func isAsked() bool {
	if strings.EqualFold(os.Getenv(disabled), "true") || os.Getenv(exporter) == "none" {
		return false
	}
	return os.Getenv(exporter) != "" || os.Getenv(endpoint) != "" || os.Getenv(tracesEndpoint) != ""
}

func start(ctx context.Context, program, version string, reporter Reporter) (*Traces, error) {
	if all := os.Getenv(exporter); all != "" && !slices.Contains(strings.Split(all, ","), "otlp") {
		return nil, fmt.Errorf("%s names no exporter but otlp that is known here", exporter)
	}
	for _, variable := range []string{endpoint, tracesEndpoint} {
		if u, err := url.Parse(os.Getenv(variable)); err != nil || os.Getenv(variable) != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("%s is no URL such as http://collector:4318", variable)
		}
	}
	otel.SetLogger(logr.New(messages{reporter})) // before anything else: by default it writes values to standard error
	c, err := newClient()
	if err != nil {
		return nil, err
	}
	own := []attribute.KeyValue{semconv.ServiceName(program)}
	if version != "" {
		own = append(own, semconv.ServiceVersion(version))
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv()) // the user's come last, and hold
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES is not a list such as site=a,team=b")
	}
	spans, err := otlptrace.New(ctx, c)
	if err != nil {
		return nil, err
	}
	return newTraces(sdktrace.NewTracerProvider(sdktrace.WithBatcher(reporting{spans, reporter}), sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{})), version)
}

func newTraces(provider *sdktrace.TracerProvider, version string) (*Traces, error) {
	t, err := newTracer(provider, version)
	return &Traces{provider: provider, interceptor: interceptor.NewTracingInterceptor(t)}, err
}

// newClient is the client of the protocol that the environment names. HTTP is OpenTelemetry's default.
func newClient() (otlptrace.Client, error) {
	switch cmp.Or(os.Getenv(tracesProtocol), os.Getenv(protocol)) {
	case "", "http/protobuf":
		return otlptracehttp.NewClient(), nil
	case "grpc":
		return otlptracegrpc.NewClient(), nil
	default:
		return nil, fmt.Errorf("%s or %s is neither http/protobuf nor grpc", tracesProtocol, protocol)
	}
}

// Trace has the calls of a client traced, and the workflows and activities of workers that use it.
func (t *Traces) Trace(options *client.Options) {
	if t != nil {
		options.Interceptors = append(options.Interceptors, t.interceptor)
	}
}

// Stop sends what is left. It gives up after some time, for the collector may be away.
func (t *Traces) Stop(patience time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// What is wrong has been reported by the exporter. The error here is that the time is over.
	_ = t.provider.Shutdown(ctx)
}

// reporting is an exporter that reports its errors.
type reporting struct {
	sdktrace.SpanExporter
	reporter Reporter
}

func (r reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil {
		r.reporter.Untraced(fmt.Errorf("the collector that %s names does not take them: %w", variableOfEndpoint(), err))
	}
	return nil
}

func variableOfEndpoint() string {
	if os.Getenv(tracesEndpoint) != "" {
		return tracesEndpoint
	}
	return endpoint
}

// messages is a log of OpenTelemetry's that passes warnings on, without their values: some are headers with tokens in them.
type messages struct{ reporter Reporter }

func (messages) Init(logr.RuntimeInfo)               {}
func (messages) Enabled(level int) bool              { return level <= 1 } // 1 is a warning, more is information
func (m messages) Info(_ int, text string, _ ...any) { m.Error(nil, text) }
func (m messages) WithValues(...any) logr.LogSink    { return m }
func (m messages) WithName(string) logr.LogSink      { return m }
func (m messages) Error(_ error, text string, _ ...any) {
	m.reporter.Untraced(fmt.Errorf("a variable of OpenTelemetry's: %s", text))
}

// Log is a Reporter that writes warnings.
type Log struct{ *slog.Logger }

// Untraced logs why.
func (l Log) Untraced(why error) { l.Warn("traces are not sent", "error", why) }
