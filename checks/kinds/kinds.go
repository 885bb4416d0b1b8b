// Package kinds lists the kinds of checks and hooks there are. A new one is a package, and a line here.
package kinds

import (
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/http"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/checks/prometheus"
)

// All are the kinds, in the order in which errors list them.
func All() checks.Kinds {
	return checks.Kinds{
		http.Kind,
		prometheus.Kind,
		job.Kind,
	}
}
