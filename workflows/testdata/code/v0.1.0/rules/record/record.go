package record

import (
	"time"
)

// Blocker is a pod, "namespace/name", that kept the node from being empty.
type Blocker struct {
	Pod string `json:"pod"`
	// Owner is who re-creates the pod, "Kind name"; empty for a bare pod.
	Owner   string    `json:"owner,omitempty"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// Until is when it no longer was in the way; absent where it was until the drain ended.
	Until time.Time `json:"until,omitzero"`
}
