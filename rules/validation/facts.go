package validation

import (
	"time"
)

// Facts are what one look found. Only what the validation is about needs to be filled in.
type Facts struct {
	Node Node `json:"node"`
	// BootIDBefore is the node's boot ID when it was cordoned; empty if it is not known.
	BootIDBefore string     `json:"bootIDBefore,omitempty"`
	DaemonSets   DaemonSets `json:"daemonSets,omitzero"`
	Checks       []Answer   `json:"checks,omitempty"`
	// Signal is what an outside signal said; absent while none came.
	Signal *Signal `json:"signal,omitempty"`
}

// Node is what a validation reads of the Node object.
type Node struct {
	Name string `json:"name"`
	// Missing: there is no such node.
	Missing    bool            `json:"missing,omitempty"`
	BootID     string          `json:"bootID,omitempty"`
	Conditions []NodeCondition `json:"conditions,omitempty"`
	// Allocatable is what the node offers to pods, sorted by resource.
	Allocatable []Amount `json:"allocatable,omitempty"`
}

// Amount is how much of a resource there is.
type Amount struct {
	Resource string `json:"resource"`
	// Quantity is a Kubernetes quantity.
	Quantity string `json:"quantity"`
}

// NodeCondition is a condition as the node reports it.
type NodeCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	// Since is the condition's last transition.
	Since   time.Time `json:"since"`
	Message string    `json:"message,omitempty"`
}

// DaemonSets are those that the selector selects.
type DaemonSets struct {
	// Selected counts them all, Wanted those that want a pod on the node.
	Selected int `json:"selected"`
	Wanted   int `json:"wanted"`
	// Lacking are the wanted ones whose pod is not there or not Ready.
	Lacking []Lacking `json:"lacking,omitempty"`
}

// Lacking is a DaemonSet without a Ready pod on the node.
type Lacking struct {
	// DaemonSet is "namespace/name".
	DaemonSet string `json:"daemonSet"`
	// Why says what is wrong and what would heal it.
	Why string `json:"why"`
}

// Answer is what a named check answered.
type Answer struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
}

// Signal is the confirmation that somebody sent for the node.
type Signal struct {
	Validated bool   `json:"validated"`
	By        string `json:"by,omitempty"`
	Comment   string `json:"comment,omitempty"`
}
