// Package metrics is what a worker exposes to Prometheus beside what its activities count: what workflows measured, the state
// that the scheduler and Temporal's lists know, windows, and what build it is.
package metrics

import (
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "drydock"

// Other stands for every value of a label that the worker's configuration does not have: what somebody else names must not
// make series without end.
const Other = "other"

// among is the value, or Other where it is none of those that are known.
func among(known []string, value string) string {
	if slices.Contains(known, value) {
		return value
	}
	return Other
}

// Build registers what build this is.
func Build(registry prometheus.Registerer, version string) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1, with the worker's version and that of the Go it was built with.",
	}, []string{"version", "go_version"})
	info.WithLabelValues(version, runtime.Version()).Set(1)
	registry.MustRegister(info)
}
