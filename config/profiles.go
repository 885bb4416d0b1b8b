package config

import (
	"fmt"
	"strings"
)

// Profiles are those of SAP's maintenance-controller.
type Profiles struct {
	// File is the path of its configuration file, absolute or from the worker's working directory; if absent, there are no profiles. It is read at
	// each evaluation, and one that is wrong leaves the last one in force.
	File string `json:"file,omitempty"`
}

// longestPath is that of Linux, in bytes.
const longestPath = 4096

func (p Profiles) validate() []error {
	switch {
	case len(p.File) >= longestPath || strings.ContainsAny(p.File, "\x00\n"):
		return []error{fmt.Errorf("profiles.file: %.80q is not the path of a file", p.File)}
	case strings.HasSuffix(p.File, "/"):
		return []error{fmt.Errorf("profiles.file: %.80q is a folder: want a file in it, such as %smaintenance.yaml", p.File, p.File)}
	}
	return nil
}
