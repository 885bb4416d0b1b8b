package worker

import (
	auditkinds "drydock.dev/drydock/audit/kinds"
	checkkinds "drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/config"
	notifykinds "drydock.dev/drydock/notify/kinds"
)

// kinds are those that a worker's configuration may have: all that there are.
func kinds() config.Kinds {
	return config.Kinds{Channels: notifykinds.All(), Checks: checkkinds.All(), Sinks: auditkinds.All()}
}
