package maintenance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

// span is what a collector prints of one.
type span struct{ service, trace, parent, id, name string }

// fields of the collector's debug exporter.
var fields = regexp.MustCompile(`(?m)^\s*(?:-> (service\.name): Str\((.*)\)|(Trace ID|Parent ID|ID|Name)\s*: (.*))$`)

// printed are the spans that a collector has received.
func printed(t *testing.T, log string) (all []span) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var s span
	for _, f := range fields.FindAllStringSubmatch(string(text), -1) {
		value := strings.TrimSpace(f[4])
		switch f[1] + f[3] {
		case "service.name":
			s.service = f[2]
		case "Trace ID":
			s.trace = value
		case "Parent ID":
			s.parent = value
		case "ID":
			s.id = value
		case "Name":
			s.name = value
			all = append(all, s)
		}
	}
	return all
}

// collector runs an OpenTelemetry collector, and has the site's programs send to it. The log is what it receives.
func collector(s *site.Site) (log string) {
	s.Helper()
	ports, err := devstack.FreePorts(1)
	if err != nil {
		s.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	dir := s.TempDir()
	config, log := filepath.Join(dir, "collector.yaml"), filepath.Join(dir, "collector.log")
	if err := os.WriteFile(config, []byte(`
receivers: {otlp: {protocols: {http: {endpoint: "`+address+`"}}}}
exporters: {debug: {verbosity: detailed, use_internal_logger: false}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`), 0o600); err != nil {
		s.Fatal(err)
	}
	out, err := os.Create(log)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { out.Close() })
	cmd := s.Command("collector", "--config", config)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	where := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_BSP_SCHEDULE_DELAY=100"}
	s.Environment = append(s.Environment, where...)
	s.Options.Environment = append(s.Options.Environment, where...)
	return log
}

// TestSlowATraceLeadsFromTheRequestToTheRelease has a real collector receive what command line and workers send, one of which is killed.
func TestSlowATraceLeadsFromTheRequestToTheRelease(t *testing.T) {
	s := site.Prepare(t, "channels: {nodes: {default: true, kubernetes: {}}}\n")
	s.Options.Config += fmt.Sprintf("hooks: {silence: {http: {url: %q}}}\n", s.Receivers("whsec_c2lnbmVk", "unused").HTTP.URL+"/silences")
	log := collector(s)
	s.StartWorker()
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	s.MustDrydock("start", "worker-01", "--hook", "afterDrain=silence")
	run := s.RunOf("worker-01")
	s.BlockedBy(run, "DisruptionBudget")
	s.Eventually("the worker's spans are received", func() error {
		if all := printed(t, log); !slices.ContainsFunc(all, func(s span) bool { return s.name == "StartActivity:Drain" }) {
			return fmt.Errorf("received: %v", all)
		}
		return nil
	})
	s.Worker.Kill()
	s.StartWorker()
	s.Allow(ns, "web")
	s.Until(run, api.Ready)
	s.MustDrydock("done", "worker-01")
	s.MustEnd(run, api.Completed)

	root := "RunWorkflow:" + api.NodeMaintenanceType
	var all []span
	s.Eventually("the end of maintenance and notification is received", func() error {
		all = printed(t, log)
		for _, name := range []string{root, "RunWorkflow:" + api.NotificationType} {
			if !slices.ContainsFunc(all, func(s span) bool { return s.name == name }) {
				return fmt.Errorf("no %s in %v", name, all)
			}
		}
		return nil
	})
	known := map[string]bool{}
	for _, sp := range all {
		known[sp.id] = true
	}
	begun := map[string]int{}
	for _, sp := range all {
		begun[sp.name]++
		switch {
		case sp.trace != all[0].trace:
			t.Errorf("%s is in another trace", sp.name)
		case sp.parent == "" && (sp.service != "drydock" || sp.name != "StartWorkflow:"+api.NodeMaintenanceType):
			t.Errorf("the trace begins with %s of %s", sp.name, sp.service)
		case sp.parent != "" && !known[sp.parent]:
			t.Errorf("%s has a parent that is not in the trace", sp.name)
		}
	}
	for _, name := range []string{"HoldNode", "Drain", "CallHook", "ReleaseNode", "Deliver"} {
		if begun["RunActivity:"+name] == 0 {
			t.Errorf("no span is of %s: %v", name, begun)
		}
	}
}
