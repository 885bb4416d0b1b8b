package nearest_test

import (
	"strings"
	"testing"

	"drydock.dev/drydock/rules/nearest"
)

func TestTo(t *testing.T) {
	known := []string{"from", "for", "mode", "maxParallel", "maxUnavailable", "url", "maxSizeMB"}
	for written, want := range map[string]string{
		"form": "from", "mod": "mode", "maxParalel": "maxParallel", "maxparallel": "maxParallel", "ulr": "url", "MODE": "mode", "maxsize": "maxSizeMB",
		"unavailable": "maxUnavailable", "parallels": "", "x": "", "": "", "nodes": "", strings.Repeat("m", 1<<20): "",
	} {
		if got := nearest.To(written, known); got != want {
			t.Errorf("%.40s: %q, want %q", written, got, want)
		}
	}
}
