// Package kinds lists the kinds of sinks of audit records there are. A new one is a package, and a line here.
package kinds

import (
	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/audit/log"
	"drydock.dev/drydock/audit/webhook"
)

// All are the kinds, in the order in which records go to them.
func All() audit.Kinds {
	return audit.Kinds{
		log.Kind,
		file.Kind,
		webhook.Kind,
	}
}
