package api

import (
	"drydock/rules/spec"
)

// DoctorInput is the input of Doctor. The zero value looks at everything and changes nothing.
type DoctorInput struct {
	// Fix heals what can be healed; By says who wants that.
	Fix     bool   `json:"fix,omitempty"`
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Nodes restricts it to some nodes.
	Nodes []string `json:"nodes,omitempty"`
	// Pause is the time between two looks, of which both have to find the same.
	Pause spec.Duration `json:"pause,omitzero"`
}
