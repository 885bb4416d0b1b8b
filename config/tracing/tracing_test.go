package tracing

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// told keeps why traces are not sent.
type told struct {
	mu  sync.Mutex
	all []string
}

func (r *told) Untraced(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, why.Error())
}

func TestTracesAreSentWhereTheEnvironmentAsks(t *testing.T) {
	const secret = "canary-of-a-token"
	for name, c := range map[string]struct {
		env  map[string]string
		want bool
		says string
	}{
		"nothing is set":            {},
		"an endpoint":               {env: map[string]string{endpoint: "http://127.0.0.1:4318"}, want: true},
		"an endpoint of traces":     {env: map[string]string{tracesEndpoint: "http://127.0.0.1:4318/v1/traces"}, want: true},
		"an exporter":               {env: map[string]string{exporter: "otlp"}, want: true},
		"several":                   {env: map[string]string{exporter: "console,otlp"}, want: true},
		"gRPC":                      {env: map[string]string{exporter: "otlp", protocol: "grpc"}, want: true},
		"none":                      {env: map[string]string{endpoint: "http://127.0.0.1:4318", exporter: "none"}},
		"disabled":                  {env: map[string]string{endpoint: "http://127.0.0.1:4318", disabled: "TRUE"}},
		"an unknown exporter":       {env: map[string]string{exporter: "zipkin"}, says: exporter},
		"an unknown protocol":       {env: map[string]string{exporter: "otlp", protocol: "http/json"}, says: protocol},
		"an unknown one of traces":  {env: map[string]string{exporter: "otlp", tracesProtocol: "udp"}, says: tracesProtocol},
		"an endpoint that is none":  {env: map[string]string{endpoint: "10.0.0.1:4318"}, says: endpoint},
		"an endpoint without host":  {env: map[string]string{endpoint: "collector:4318"}, says: endpoint},
		"wrong attributes":          {env: map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_RESOURCE_ATTRIBUTES": secret}, says: "OTEL_RESOURCE_ATTRIBUTES"},
		"headers of another syntax": {env: map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS": "Authorization: Bearer " + secret}, want: true, says: "OpenTelemetry"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.env {
				t.Setenv(variable, value)
			}
			var r told
			traces := Start(t.Context(), "drydock", "v1", &r)
			traces.Stop(time.Second)
			if got := traces != nil; got != c.want {
				t.Errorf("traces are sent: %v, want %v", got, c.want)
			}
			if all := strings.Join(r.all, "\n"); !strings.Contains(all, c.says) || c.says == "" && all != "" || strings.Contains(all, secret) {
				t.Errorf("it tells %q, want %q", all, c.says)
			}
		})
	}
}

// Where the collector does not answer, the program says so, and ends nevertheless.
func TestACollectorIsAway(t *testing.T) {
	t.Setenv(endpoint, "http://127.0.0.1:1")
	var r told
	traces := Start(t.Context(), "drydock", "", &r)
	_, one := traces.provider.Tracer("test").Start(t.Context(), "one")
	one.End()
	traces.Stop(5 * time.Second)
	if len(r.all) == 0 || !strings.Contains(r.all[0], endpoint) {
		t.Errorf("it tells %q", r.all)
	}
}

// recording keeps spans.
func recording(t *testing.T) (*tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tr, err := newTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(ids{})), "v1")
	if err != nil {
		t.Fatal(err)
	}
	return tr, spans
}

// recorded runs a workflow of a type, which runs an activity and a child, and returns the spans.
func recorded(t *testing.T, kind string, header *commonpb.Header) tracetest.SpanStubs {
	t.Helper()
	tr, spans := recording(t)
	var suite testsuite.WorkflowTestSuite
	suite.SetHeader(header)
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{interceptor.NewTracingInterceptor(tr)},
	})
	acts := func(context.Context) error { return nil }
	env.RegisterActivity(acts)
	env.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: api.NotificationType})
	runs := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		if err := workflow.ExecuteActivity(ctx, acts).Get(ctx, nil); err != nil {
			return err
		}
		return workflow.ExecuteChildWorkflow(ctx, api.NotificationType).Get(ctx, nil)
	}
	env.RegisterWorkflowWithOptions(runs, workflow.RegisterOptions{Name: kind})
	env.ExecuteWorkflow(kind)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	return spans.GetSpans()
}

func TestATraceIsAMaintenance(t *testing.T) {
	for kind, want := range map[string]bool{api.NodeMaintenanceType: true, api.SchedulerType: false, api.MaintenancePlanType: false, api.NotificationType + "s": false} {
		spans := recorded(t, kind, nil)
		if !want {
			if len(spans) > 0 {
				t.Errorf("%s: %d spans, want none: %v", kind, len(spans), names(spans))
			}
			continue
		}
		for _, prefix := range []string{"RunWorkflow:" + kind, "StartActivity:", "RunActivity:", "StartChildWorkflow:" + api.NotificationType, "RunWorkflow:" + api.NotificationType} {
			if !slices.ContainsFunc(names(spans), func(n string) bool { return strings.HasPrefix(n, prefix) }) {
				t.Errorf("%s: no span %s in %v", kind, prefix, names(spans))
			}
		}
		for _, s := range spans {
			if s.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
				t.Errorf("%s: %s is in another trace", kind, s.Name)
			}
		}
	}
}

func names(spans tracetest.SpanStubs) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

// A header comes from whoever starts a workflow.
func TestWhatAHeaderSaysFailsNoMaintenance(t *testing.T) {
	seen := 0
	for _, said := range []any{
		map[string]string{"traceparent": "nonsense"}, map[string]string{"traceparent": "00-00000000000000000000000000000000-0000000000000000-01"}, 7, "x",
	} {
		payload, err := converter.GetDefaultDataConverter().ToPayload(said)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range recorded(t, api.NodeMaintenanceType, &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": payload}}) {
			if s.Name == "RunWorkflow:"+api.NodeMaintenanceType && (s.Parent.IsValid() || !s.SpanContext.IsValid()) {
				t.Errorf("header %v: parent %v", said, s.Parent)
			}
			seen++
		}
	}
	if seen < 4*5 {
		t.Errorf("%d spans of four maintenances", seen)
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if err != nil {
		t.Fatal(err)
	}
	spans := recorded(t, api.NodeMaintenanceType, &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": payload}})
	for _, s := range spans {
		if got := s.SpanContext.TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in trace %s, not in the one of who asked", s.Name, got)
		}
	}
}

// Each worker that takes a workflow over makes its span again.
func TestAWorkflowHasOneSpanInAllWorkers(t *testing.T) {
	of := func(key string) trace.SpanContext {
		tr, spans := recording(t)
		s, err := tr.StartSpan(&interceptor.TracerStartSpanOptions{Operation: "RunWorkflow", Name: api.NodeMaintenanceType, IdempotencyKey: key})
		if err != nil {
			t.Fatal(err)
		}
		s.Finish(&interceptor.TracerFinishSpanOptions{})
		return spans.GetSpans()[0].SpanContext
	}
	if a, b := of("run 1"), of("run 1"); !a.Equal(b) || !a.IsValid() {
		t.Errorf("two workers have %v and %v", a, b)
	}
	if a, b := of("run 1"), of("run 2"); a.TraceID() == b.TraceID() || a.SpanID() == b.SpanID() {
		t.Errorf("two runs have %v and %v", a, b)
	}
	if a, b := of(""), of(""); a.TraceID() == b.TraceID() || a.SpanID() == b.SpanID() {
		t.Errorf("two without a key have %v and %v", a, b)
	}
}

// finished is a span of a maintenance that ended so.
func finished(t *testing.T, err error) sdktrace.Status {
	t.Helper()
	tr, spans := recording(t)
	s, failed := tr.StartSpan(&interceptor.TracerStartSpanOptions{Operation: "RunWorkflow", Name: api.NodeMaintenanceType})
	if failed != nil {
		t.Fatal(failed)
	}
	s.Finish(&interceptor.TracerFinishSpanOptions{Error: err})
	one := spans.GetSpans()[0]
	if len(one.Events) > 0 {
		t.Errorf("%v: events %v", err, one.Events)
	}
	return one.Status
}

// What a payload codec encrypts is in the texts of errors too.
func TestSpansHaveTheTypesOfErrorsOnly(t *testing.T) {
	for want, err := range map[string]error{
		"":                    nil,
		"Blocked":             temporal.NewApplicationError("canary", "Blocked"),
		"*errors.errorString": errors.New("canary"),
	} {
		got := finished(t, err)
		if isError := err != nil; got.Description != want || (got.Code == codes.Error) != isError {
			t.Errorf("%v: %+v, want %q", err, got, want)
		}
	}
	if got := finished(t, &workflow.ContinueAsNewError{}); got.Code != codes.Unset {
		t.Errorf("a run that is continued as new is %+v", got)
	}
}

func TestTheStartOfAWorkflowThatServesManyIsInNoTrace(t *testing.T) {
	tr, spans := recording(t)
	parent, err := tr.StartSpan(&interceptor.TracerStartSpanOptions{Operation: "RunWorkflow", Name: api.NodeMaintenanceType})
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range withMessages {
		s, err := tr.StartSpan(&interceptor.TracerStartSpanOptions{Operation: operation, Name: "tell", Parent: parent, ToHeader: true})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := tr.MarshalSpan(s); err != nil || len(data) > 0 {
			t.Errorf("%s passes %v on (%v)", operation, data, err)
		}
		s.Finish(&interceptor.TracerFinishSpanOptions{})
	}
	if all := spans.GetSpans(); len(all) > 0 {
		t.Errorf("spans %v", names(all))
	}
}

func TestLogsHaveTheIDsOfATraceOnly(t *testing.T) {
	tr, _ := recording(t)
	for kind, want := range map[string]bool{api.NodeMaintenanceType: true, api.SchedulerType: false} {
		s, err := tr.StartSpan(&interceptor.TracerStartSpanOptions{Operation: "RunWorkflow", Name: kind})
		if err != nil {
			t.Fatal(err)
		}
		plain := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
		if got := tr.GetLogger(plain, s) != plain; got != want {
			t.Errorf("%s: an ID is added: %v", kind, got)
		}
	}
}
