package config

import (
	"fmt"
	"regexp"
	"slices"
)

// Nexus is how workflows of other namespaces ask for maintenances.
type Nexus struct {
	// Endpoint is the Nexus endpoint by which the worker's cluster is called, and which `drydock setup --apply` makes; the worker serves the
	// service `drydock` if it is set. Whoever may call the endpoint may have any node of the cluster maintained.
	Endpoint string `json:"endpoint,omitempty"`
	// Work are the endpoints whose operations callers may name as the work on a node. There may be 50.
	Work []string `json:"work,omitempty"`
}

const maxNexusWork = 50

// endpointName is what Temporal takes as the name of a Nexus endpoint.
var endpointName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]{0,198}[a-zA-Z0-9]$`)

func (n Nexus) validate() (wrong []error) {
	if n.Endpoint != "" && !endpointName.MatchString(n.Endpoint) {
		wrong = append(wrong, notEndpoint("nexus.endpoint", n.Endpoint))
	}
	if n.Endpoint == "" && len(n.Work) > 0 {
		wrong = append(wrong, fmt.Errorf("nexus.work: is of nexus.endpoint, which is missing"))
	}
	if len(n.Work) > maxNexusWork {
		wrong = append(wrong, fmt.Errorf("nexus.work: names %d endpoints: at most %d are taken", len(n.Work), maxNexusWork))
	}
	for i, name := range n.Work {
		if !endpointName.MatchString(name) {
			wrong = append(wrong, notEndpoint(fmt.Sprintf("nexus.work[%d]", i), name))
		}
	}
	return wrong
}

func notEndpoint(field, name string) error {
	return fmt.Errorf("%s: %.253q is not the name of a Nexus endpoint: want a letter, then letters, digits and '-', at most 200", field, name)
}

// MayWork reports whether callers may name the endpoint as that of their work.
func (n Nexus) MayWork(endpoint string) bool { return slices.Contains(n.Work, endpoint) }
