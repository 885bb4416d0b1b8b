package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

var (
	// beginning are the workflows with which a trace may begin. Others are in a trace only where what started them is.
	beginning = []string{api.NodeMaintenanceType, api.NodeRemediationType, api.ProfileTransitionType}
	// untraced are the workflows that go on for weeks, or for ever.
	untraced = []string{
		api.SchedulerType, api.MaintenancePlanType, api.PlanRunType, api.LockstepType, api.HealthCheckType, api.ProfilesType, api.WindowsType,
	}
)

// ofWorkflows are the operations of the SDK's interceptor that have the name of a workflow type. withMessages begin a workflow, or send a
// message to one that runs already. Such a workflow serves many maintenances, and belongs to the trace of none.
var (
	ofWorkflows  = []string{"RunWorkflow", "StartWorkflow", "StartChildWorkflow"}
	withMessages = []string{"SignalWithStartWorkflow", "UpdateWithStartWorkflow"}
)

// tracer is the SDK's, which decides what is in a trace, and gives the span of a workflow one ID in all workers that run it.
type tracer struct {
	interceptor.Tracer
	options opentelemetry.TracerOptions
}

func newTracer(provider *sdktrace.TracerProvider, version string) (*tracer, error) {
	options := opentelemetry.TracerOptions{
		Tracer: provider.Tracer("drydock.dev/drydock", trace.WithInstrumentationVersion(version)),
		// Signals, queries and updates are many, and each would be a part of its sender's trace.
		DisableSignalTracing: true, DisableQueryTracing: true, DisableUpdateTracing: true,
		// What somebody else put into a header must not fail a maintenance, or be carried on.
		AllowInvalidParentSpans: true, DisableBaggage: true, TextMapPropagator: propagation.TraceContext{},
	}
	t, err := opentelemetry.NewTracer(options)
	return &tracer{Tracer: t, options: options}, err
}

// StartSpan starts a span, or one that is not recorded. The SDK's tracer tells its SpanStarter neither the parent nor the key, so that each span
// has a tracer that knows its own.
func (t *tracer) StartSpan(o *interceptor.TracerStartSpanOptions) (interceptor.TracerSpan, error) {
	options := t.options
	options.SpanStarter = func(ctx context.Context, t trace.Tracer, name string, with ...trace.SpanStartOption) trace.Span {
		if !isTraced(o) {
			return noop.Span{}
		}
		if o.IdempotencyKey != "" {
			ctx = context.WithValue(ctx, key{}, o.IdempotencyKey)
		}
		_, s := t.Start(ctx, name, with...)
		return &span{Span: s}
	}
	once, err := opentelemetry.NewTracer(options)
	if err != nil {
		return nil, err
	}
	return once.StartSpan(o)
}

// GetLogger adds the IDs of the span to what a workflow or an activity logs, where there is one.
func (t *tracer) GetLogger(logger log.Logger, of interceptor.TracerSpanRef) log.Logger {
	if !isValid(of) {
		return logger
	}
	return t.Tracer.GetLogger(logger, of)
}

// isTraced reports whether a span is a part of a trace.
func isTraced(o *interceptor.TracerStartSpanOptions) bool {
	ofWorkflow := slices.Contains(ofWorkflows, o.Operation)
	if ofWorkflow && slices.Contains(untraced, o.Name) || slices.Contains(withMessages, o.Operation) {
		return false
	}
	return isValid(o.Parent) || ofWorkflow && slices.Contains(beginning, o.Name)
}

// span has the types of errors only: their texts may be what a payload codec encrypts. To continue as new is no error.
type span struct {
	trace.Span
	failure string
}

func (s *span) RecordError(err error, _ ...trace.EventOption) {
	var (
		continued   *workflow.ContinueAsNewError
		application *temporal.ApplicationError
	)
	switch {
	case err == nil || errors.As(err, &continued):
	case errors.As(err, &application):
		s.failure = application.Type()
	default:
		s.failure = fmt.Sprintf("%T", err)
	}
}

// SetStatus is called after RecordError, with the same error's text.
func (s *span) SetStatus(code codes.Code, _ string) {
	if s.failure != "" {
		s.Span.SetStatus(code, s.failure)
	}
}

// isValid reports whether a parent, of the process or from a header, is a span.
func isValid(parent interceptor.TracerSpanRef) bool {
	switch p := parent.(type) {
	case trace.Span:
		return p.SpanContext().IsValid()
	case interface{ IsValid() bool }:
		return p.IsValid()
	}
	return false
}

// key is the context key of what the IDs of a span follow from.
type key struct{}

// ids makes the IDs of spans. Each worker that takes a workflow over makes its span again. The IDs follow from the run, so that all of these
// are one span, and everything that the workflow starts is a child of it.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if sum, ok := sumOf(ctx); ok {
		return trace.TraceID(sum[:16]), trace.SpanID(sum[16:24])
	}
	_, _ = rand.Read(t[:]) // never fails
	_, _ = rand.Read(s[:])
	return t, s
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (s trace.SpanID) {
	if sum, ok := sumOf(ctx); ok {
		return trace.SpanID(sum[16:24])
	}
	_, _ = rand.Read(s[:])
	return s
}

func sumOf(ctx context.Context) ([]byte, bool) {
	k, ok := ctx.Value(key{}).(string)
	sum := sha256.Sum256([]byte(k))
	return sum[:], ok
}
