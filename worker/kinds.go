package worker

import (
	auditkinds "drydock/audit/kinds"
	checkkinds "drydock/checks/kinds"
	"drydock/config"
	notifykinds "drydock/notify/kinds"
)

// kinds are those that a worker's configuration may have: all that there are.
func kinds() config.Kinds {
	return config.Kinds{Channels: notifykinds.All(), Checks: checkkinds.All(), Sinks: auditkinds.All()}
}
