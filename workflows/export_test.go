package workflows

// TimedOut is timedOut, for tests.
var TimedOut = timedOut

// MessageNames are the names of all messages to a maintenance.
func MessageNames() []string {
	var names []string
	for _, h := range handlers {
		names = append(names, h.name)
	}
	return names
}
