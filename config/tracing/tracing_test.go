package tracing

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// variables are an environment.
type variables map[string]string

func (v variables) LookupEnv(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

func (v variables) Environ() (all []string) {
	for name, value := range v {
		all = append(all, name+"="+value)
	}
	return all
}

func TestTracesAreSentWhereTheEnvironmentAsks(t *testing.T) {
	for name, c := range map[string]struct {
		env  variables
		want bool
		err  string
	}{
		"nothing is set":          {env: variables{}},
		"an endpoint":             {env: variables{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, want: true},
		"an endpoint of traces":   {env: variables{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, want: true},
		"an exporter":             {env: variables{"OTEL_TRACES_EXPORTER": "otlp"}, want: true},
		"gRPC":                    {env: variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: true},
		"none":                    {env: variables{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}},
		"disabled":                {env: variables{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}},
		"an unknown exporter":     {env: variables{"OTEL_TRACES_EXPORTER": "zipkin"}, err: `OTEL_TRACES_EXPORTER is "zipkin": otlp or none`},
		"an unknown protocol":     {env: variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, err: `OTEL_EXPORTER_OTLP_PROTOCOL is "http/json": http/protobuf or grpc`},
		"an unknown one of spans": {env: variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "udp"}, err: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
	} {
		t.Run(name, func(t *testing.T) {
			traces, err := Start(t.Context(), c.env, "drydock", "v1", func(err error) { t.Log(err) })
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			traces.Stop()
			if got := traces != nil; got != c.want {
				t.Errorf("traces are sent: %v, want %v", got, c.want)
			}
		})
	}
}

// recorded runs a workflow of a type, which runs an activity and a child, and returns the spans.
func recorded(t *testing.T, kind string, header *commonpb.Header) tracetest.SpanStubs {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(ids{}))
	tr, err := newTracer(provider, "v1")
	if err != nil {
		t.Fatal(err)
	}
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
	for _, said := range []any{
		map[string]string{"traceparent": "nonsense"}, map[string]string{"traceparent": "00-00000000000000000000000000000000-0000000000000000-01"}, 7, "x",
	} {
		payload, err := converter.GetDefaultDataConverter().ToPayload(said)
		if err != nil {
			t.Fatal(err)
		}
		if spans := recorded(t, api.NodeMaintenanceType, &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": payload}}); len(spans) == 0 {
			t.Errorf("header %v: no span", said)
		}
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
	of := func(name string) (trace, span string) {
		ctx := context.WithValue(t.Context(), key{}, name)
		a, b := ids{}.NewIDs(ctx)
		if again := (ids{}).NewSpanID(ctx, a); again != b {
			t.Errorf("span %v as a root, %v as a child", b, again)
		}
		return a.String(), b.String()
	}
	trace, span := of("run 1")
	if t2, s2 := of("run 1"); t2 != trace || s2 != span {
		t.Errorf("another worker's is %s %s, want %s %s", t2, s2, trace, span)
	}
	if t2, s2 := of("run 2"); t2 == trace || s2 == span {
		t.Errorf("another run has the same: %s %s", t2, s2)
	}
	a, b := ids{}.NewIDs(t.Context())
	c, d := ids{}.NewIDs(t.Context())
	if a == c || b == d || !a.IsValid() || !b.IsValid() {
		t.Errorf("IDs %v %v and %v %v", a, b, c, d)
	}
}
