package nodeevent

import ()

// Event is a Kubernetes Event to record on a node; the zero value records none.
type Event struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	// Key tells occurrences of the same reason in one maintenance apart.
	Key string `json:"key,omitempty"`
}
