package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows/meter"
)

// gather are the metric families of a collector, by name.
func gather(c prometheus.Collector) (map[string]*dto.MetricFamily, error) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	return gathered(registry)
}

func gathered(registry prometheus.Gatherer) (map[string]*dto.MetricFamily, error) {
	families, err := registry.Gather()
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName, err
}

// registerAll registers all but the state.
func registerAll(t *testing.T, registry prometheus.Registerer) client.MetricsHandler {
	t.Helper()
	Build(registry, "v1.2.3")
	if err := NewWindows(registry, map[string]window.Window{"nights": {From: "22:00", To: "04:00"}}); err != nil {
		t.Fatal(err)
	}
	return Handler(registry, client.MetricsNopHandler, []string{"oncall"})
}

// Every value that a label can have is there from the start, so that a rate begins at 0 and not at its first event.
func TestWhatWorkflowsMeasureIsThereFromTheStart(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registerAll(t, registry)
	families, err := gathered(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range meter.All {
		want := max(1, len(m.Values))
		if got := len(families[m.Name].GetMetric()); got != want {
			t.Errorf("%s: %d series, want %d", m.Name, got, want)
		}
		if m.Durations != (families[m.Name].GetType() == dto.MetricType_HISTOGRAM) {
			t.Errorf("%s is a %s", m.Name, families[m.Name].GetType())
		}
	}
}

func TestHandlerCountsWhatWorkflowsMeasure(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	// The SDK gives each handler tags of its own, which are no labels of ours.
	h := registerAll(t, registry).WithTags(map[string]string{"namespace": "default", "workflow_type": "NodeMaintenance"})
	h.WithTags(map[string]string{"outcome": "Completed"}).Counter(meter.Ended.Name).Inc(2)
	h.WithTags(map[string]string{"channel": "oncall"}).Counter(meter.GivenUp.Name).Inc(1)
	for i := range 100 {
		h.WithTags(map[string]string{"channel": fmt.Sprint("made-up-", i)}).Counter(meter.GivenUp.Name).Inc(1)
	}
	h.Counter(meter.SLAExpired.Name).Inc(1)
	for _, took := range []time.Duration{500 * time.Millisecond, 40 * time.Second, 30 * 24 * time.Hour} {
		h.WithTags(map[string]string{"phase": "Draining"}).Timer(meter.Phases.Name).Record(took)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP drydock_deliveries_given_up_total Messages that were not delivered to a channel and are not tried any more.
# TYPE drydock_deliveries_given_up_total counter
drydock_deliveries_given_up_total{channel="oncall"} 1
drydock_deliveries_given_up_total{channel="other"} 100
# HELP drydock_maintenances_ended_total Maintenances that have ended, by their last phase.
# TYPE drydock_maintenances_ended_total counter
drydock_maintenances_ended_total{outcome="Cancelled"} 0
drydock_maintenances_ended_total{outcome="Completed"} 2
drydock_maintenances_ended_total{outcome="Failed"} 0
drydock_maintenances_ended_total{outcome="NodeGone"} 0
# HELP drydock_sla_expired_total Drains that were not over when their SLA was.
# TYPE drydock_sla_expired_total counter
drydock_sla_expired_total 1
`), "drydock_deliveries_given_up_total", "drydock_maintenances_ended_total", "drydock_sla_expired_total"); err != nil {
		t.Error(err)
	}
	families, err := gathered(registry)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families[meter.Phases.Name].GetMetric(), func(m *dto.Metric) bool { return m.GetLabel()[0].GetValue() == "Draining" })
	drained := families[meter.Phases.Name].GetMetric()[i].GetHistogram()
	if drained.GetSampleCount() != 3 || len(drained.GetBucket()) != len(durations) || drained.GetBucket()[0].GetCumulativeCount() != 1 {
		t.Errorf("classic: %v", drained)
	}
	if drained.GetSchema() < 2 || len(drained.GetPositiveSpan()) == 0 {
		t.Errorf("native: schema %d, spans %v", drained.GetSchema(), drained.GetPositiveSpan())
	}
}

// sdkHandler is another's, which gets what is not Drydock's.
type sdkHandler struct {
	client.MetricsHandler
	names *[]string
}

func (h sdkHandler) WithTags(map[string]string) client.MetricsHandler { return h }
func (h sdkHandler) Counter(name string) client.MetricsCounter {
	*h.names = append(*h.names, name)
	return h.MetricsHandler.Counter(name)
}
func (h sdkHandler) Timer(name string) client.MetricsTimer {
	*h.names = append(*h.names, name)
	return h.MetricsHandler.Timer(name)
}

func TestHandlerLeavesTheSDKItsOwn(t *testing.T) {
	var names []string
	h := Handler(prometheus.NewRegistry(), sdkHandler{client.MetricsNopHandler, &names}, nil).WithTags(map[string]string{"a": "b"})
	h.Counter("temporal_request").Inc(1)
	h.Timer("temporal_request_latency").Record(time.Second)
	h.Counter(meter.Started.Name).Inc(1)
	h.Gauge("temporal_num_pollers").Update(1)
	if got := strings.Join(names, " "); got != "temporal_request temporal_request_latency" {
		t.Errorf("it got %q", got)
	}
}

func TestWindowsSayWhetherTheyAreOpenAndWhenTheyAreNext(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := map[string]window.Window{
		"nights": {From: "22:00", To: "04:00"}, "once": {Cron: "0 6 29 2 *", For: period.Duration(time.Hour)}, // in 2028
	}
	if err := NewWindows(registry, w); err != nil {
		t.Fatal(err)
	}
	families, err := gathered(registry)
	if err != nil || len(families["drydock_window_open"].GetMetric()) != 2 {
		t.Fatalf("%v, %v", families, err)
	}
	nights, err := newWindows(w)
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	nights.now = func() time.Time { return now }
	for _, c := range []struct {
		at   time.Duration
		open int
		next string
	}{
		{0, 0, "36000"}, {10 * time.Hour, 1, "86400"}, {15 * time.Hour, 1, "68400"}, {16 * time.Hour, 0, "64800"}, {40 * time.Hour, 0, "64800"},
	} {
		now = noon.Add(c.at)
		if err := testutil.CollectAndCompare(nights, strings.NewReader(fmt.Sprintf(`
# HELP drydock_window_open 1 while the window is open.
# TYPE drydock_window_open gauge
drydock_window_open{window="nights"} %d
drydock_window_open{window="once"} 0
# HELP drydock_window_next_opening_seconds Seconds until the window opens next, the present opening left out; absent if that is more than a year.
# TYPE drydock_window_next_opening_seconds gauge
drydock_window_next_opening_seconds{window="nights"} %s
`, c.open, c.next))); err != nil {
			t.Errorf("at %s: %v", now, err)
		}
	}
	if err := NewWindows(prometheus.NewRegistry(), map[string]window.Window{"odd": {From: "25:00"}}); err == nil {
		t.Error("a window that is none is taken")
	}
}

func TestSourceCountsWithoutListing(t *testing.T) {
	temporal := &mocks.Client{}
	value, err := converter.GetDefaultDataConverter().ToPayload(api.Summary{Usage: schedule.Usage{Slots: schedule.Use{Used: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	temporal.On("QueryWorkflow", mock.Anything, "prod/drydock-scheduler", "", api.QuerySummary).Return(client.NewValue(&commonpb.Payloads{Payloads: []*commonpb.Payload{value}}), nil)
	temporal.On("CountWorkflow", mock.Anything, mock.Anything).Return(
		func(_ context.Context, in *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
			queries = append(queries, in.GetQuery())
			return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(len(in.GetQuery()))}, nil
		})
	s := Source{Temporal: temporal, Namespace: "default", Cluster: "prod", TaskQueue: "prod/drydock"}
	r, err := s.read(t.Context())
	if err != nil || r.summary.Slots.Used != 7 || r.maintenances == 0 || r.awaiting == 0 || len(queries) != 6 {
		t.Errorf("%+v, %v, %q", r, err, queries)
	}
	if want := "WorkflowType = 'NodeMaintenance' AND TaskQueue = 'prod/drydock' AND ExecutionStatus = 'Running' AND DrydockPhase = 'AwaitingApproval'"; queries[1] != want {
		t.Errorf("%s", queries[1])
	}
}

func TestSourceDoesWithoutSearchAttributes(t *testing.T) {
	temporal := &mocks.Client{}
	temporal.On("CountWorkflow", mock.Anything, mock.Anything).Return(
		func(_ context.Context, in *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
			if strings.Contains(in.GetQuery(), "DrydockPhase") {
				return nil, serviceerror.NewInvalidArgument("invalid query: DrydockPhase is not a valid search attribute")
			}
			return &workflowservice.CountWorkflowExecutionsResponse{Count: 3}, nil
		})
	s := Source{Temporal: temporal}
	if n, err := s.count(t.Context(), api.NodeMaintenanceType, "AwaitingApproval"); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := s.count(t.Context(), api.NodeMaintenanceType, ""); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	down := &mocks.Client{}
	down.On("QueryWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil, errors.New("no such luck"))
	if _, err := (Source{Temporal: down}).read(t.Context()); err == nil || !strings.Contains(err.Error(), "asking the scheduler") {
		t.Error(err)
	}
}
