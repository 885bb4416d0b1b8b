package api

import "drydock.dev/drydock/rules/spec"

// DoctorInput is the input of Doctor. The zero value looks at everything and changes nothing.
type DoctorInput struct {
	// Fix heals what can be healed; By says who wants that.
	Fix     bool   `json:"fix,omitempty"`
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Nodes restricts it to some nodes.
	Nodes []string `json:"nodes,omitempty"`
	// Lost are IDs of Temporal namespaces whose histories are lost, or of this one after it was restored to an earlier state: what
	// marks of theirs say and Temporal does not know counts as ended.
	Lost []string `json:"lost,omitempty"`
	// Pause is the time between two looks, of which both have to find the same.
	Pause spec.Duration `json:"pause,omitzero"`
}
