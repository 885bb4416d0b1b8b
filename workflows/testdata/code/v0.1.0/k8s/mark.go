package k8s

import (
	"k8s.io/apimachinery/pkg/types"
)

// Prior is what a mark says of the node before Drydock came. A maintenance remembers it: somebody may take the mark off,
// and the node by itself does not tell any more.
type Prior struct {
	// UID is the node that it is about.
	UID types.UID `json:"uid"`
	// Cordoned says that the cordon is Drydock's.
	Cordoned bool `json:"cordoned,omitempty"`
	// Protections are the values that they had before; those without one are absent.
	Protections map[string]string `json:"protections,omitempty"`
}
