package validation

import ()

// Signal is somebody's word on the node.
type Signal struct {
	Validated bool   `json:"validated"`
	By        string `json:"by,omitempty"`
	Comment   string `json:"comment,omitempty"`
}
