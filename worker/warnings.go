package worker

import (
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/rules/setup"
)

// warnOfRetention says where the histories of maintenances go away too soon.
func warnOfRetention(o Options, namespace string, home execution.Namespace) {
	if home.Retention < setup.DefaultRetention {
		o.Logger.Warn("the namespace keeps histories for less than 30 days: keep audit records (audit), or raise its retention (drydock setup --apply)",
			"namespace", namespace, "retention", home.Retention)
	}
}

// warnOfOpenServer says where nothing keeps anybody from acting with the worker's rights.
func warnOfOpenServer(o Options, options client.Options) {
	if !temporalenv.ShowsCredentials(options) {
		o.Logger.Warn("Temporal asks for no credentials: anyone who reaches it can evict pods with this worker's rights; put an authorizer and TLS before it (docs/concepts/trust.md)",
			"address", options.HostPort, "namespace", options.Namespace)
	}
}
