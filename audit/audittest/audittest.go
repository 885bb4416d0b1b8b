// Package audittest has what the tests of all kinds of sinks need.
package audittest

import (
	"log/slog"
	"strings"
	"time"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/sections"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// Record is that of a maintenance of a node.
func Record(node, run string) record.Record {
	return record.Record{
		Schema: record.Schema, WorkflowID: "node-maintenance/" + node + "/ops", RunID: run, Node: node, Requestor: "ops",
		Phase: "Completed", CreatedAt: noon.Add(-time.Hour), EndedAt: noon,
	}
}

// Runs are the run IDs of records.
func Runs(records []record.Record) string {
	var all []string
	for _, r := range records {
		all = append(all, r.RunID)
	}
	return strings.Join(all, " ")
}

// Sinks are those of one configured sink.
func Sinks(kind string, config audit.SinkConfig, logger *slog.Logger) *audit.Sinks {
	return audit.New(audit.Config{Sinks: []sections.Chosen[audit.SinkConfig]{{Kind: kind, Config: config}}}, logger)
}
