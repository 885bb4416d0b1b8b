package client

import (
	"strings"
	"testing"

	"drydock.dev/drydock/rules/spec"
)

func TestStaticSummaryFitsTemporal(t *testing.T) {
	if got, want := staticSummary(spec.Maintenance{Node: "n", Requestor: "ops", Reason: "a\nb"}), "n for ops: a b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	long := staticSummary(spec.Maintenance{Node: "n", Requestor: "ops", Reason: strings.Repeat("ü", 400)})
	if len(long) > maxSummary || !strings.HasSuffix(long, "ü…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
