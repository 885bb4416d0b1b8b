package worker

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/rules/window"
)

// desc is a metric, with the text by which it is described to Prometheus and in docs/reference/metrics.md.
type desc struct {
	name, help string
	labels     []string
}

// descs notes what is registered, as well as registering it.
type descs struct {
	*prometheus.Registry
	all *[]desc
}

// described is how a Desc shows itself, which it shows in no other way.
var described = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: (.*)variableLabels: \{(.*)\}\}$`)

func (d descs) Register(c prometheus.Collector) error {
	all := make(chan *prometheus.Desc)
	go func() {
		c.Describe(all)
		close(all)
	}()
	for one := range all {
		found := described.FindStringSubmatch(one.String())
		quoted, err := strconv.QuotedPrefix(found[2])
		if err != nil {
			return fmt.Errorf("%s: %w", one, err)
		}
		help, _ := strconv.Unquote(quoted)
		*d.all = append(*d.all, desc{found[1], help, strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' })})
	}
	return d.Registry.Register(c)
}

func (d descs) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := d.Register(c); err != nil {
			panic(err)
		}
	}
}

// registered are all metrics of a worker with a window and a channel.
func registered(t *testing.T) descs {
	t.Helper()
	d := descs{prometheus.NewPedanticRegistry(), new([]desc)}
	o := Options{Config: config.Default(), Logger: slog.New(slog.DiscardHandler), Version: "v1"}
	o.Config.Windows = map[string]window.Window{"nights": {From: "22:00", To: "04:00"}}
	if _, err := ownMetrics(o, d); err != nil {
		t.Fatal(err)
	}
	drain.NewMetrics(d)
	delivery.NewMetrics(d, map[string]string{"oncall": "slack"})
	profile.NewMetrics(d, nil, o.Logger)
	differsGauge(d)
	return d
}

func TestTypesOfWorkflowsMakeNoSeriesWithoutEnd(t *testing.T) {
	registry := prometheus.NewRegistry()
	handler, err := ownMetrics(Options{Config: config.Default(), Logger: slog.New(slog.DiscardHandler), Version: "v1"}, registry)
	if err != nil {
		t.Fatal(err)
	}
	const named = maxSeries + 100
	for i := range named {
		of := handler.WithTags(map[string]string{"workflow_type": fmt.Sprint("Forged-", i)})
		of.Counter("temporal_workflow_failed").Inc(1)
		of.Timer("temporal_workflow_endtoend_latency").Record(time.Second)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "temporal_workflow_") {
			continue
		}
		found++
		total := 0.0
		for _, m := range family.GetMetric() {
			total += m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		if n := len(family.GetMetric()); n > maxSeries || total != named {
			t.Errorf("%s has %d series, which count %v of %d", family.GetName(), n, total, named)
		}
	}
	if found != 2 {
		t.Errorf("%d metrics of the SDK", found)
	}
}

// Of every label it is known which values it may have, and the names are as Prometheus' own linter wants them.
func TestMetricsAreLinted(t *testing.T) {
	d := registered(t)
	problems, err := testutil.GatherAndLint(d.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "drydock_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	families, err := d.Gather()
	if err != nil {
		t.Fatal(err)
	}
	bounded := []string{"phase", "outcome", "rung", "node", "channel", "kind", "answer", "reason", "window", "version", "go_version"}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "drydock_") {
			continue
		}
		for _, label := range family.GetMetric()[0].GetLabel() {
			if !slices.Contains(bounded, label.GetName()) {
				t.Errorf("%s has the label %s: say what bounds it", family.GetName(), label.GetName())
			}
		}
	}
}
