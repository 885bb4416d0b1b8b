// Package state is what a node's labels and its annotation say of its profiles, as SAP's maintenance-controller writes it.
package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Keys on nodes.
const (
	// ProfileLabel has the names of a node's profiles; its owner is the user.
	ProfileLabel = "cloud.sap/maintenance-profile"
	// StateLabel says the most crucial state of a node's profiles.
	StateLabel = "cloud.sap/maintenance-state"
	// LogDetailsLabel asks for more words about the node's checks.
	LogDetailsLabel = "cloud.sap/maintenance-log-details"
	// DataAnnotation has the state itself.
	DataAnnotation = "cloud.sap/maintenance-data"
)

// DefaultProfile is that of nodes whose label names none.
const DefaultProfile = "default"

// separator stands between the names of a label.
const separator = "--"

// State is where a profile is on a node.
type State string

// The states, from the least crucial.
const (
	Operational State = "operational"
	Required    State = "maintenance-required"
	Maintenance State = "in-maintenance"
)

// All are the states, from the least crucial.
func All() []State { return []State{Operational, Required, Maintenance} }

// Known reports whether it is a state.
func (s State) Known() bool { return slices.Contains(All(), s) }

// Crucial is the most crucial of some states; of none it is operational.
func Crucial(states []State) State {
	most := Operational
	for _, s := range states {
		if slices.Index(All(), s) > slices.Index(All(), most) {
			most = s
		}
	}
	return most
}

// Profiles are the names in a node's profile label, in its order, each once.
func Profiles(labels map[string]string) []string {
	label := labels[ProfileLabel]
	if label == "" {
		return []string{DefaultProfile}
	}
	var names []string
	for name := range strings.SplitSeq(label, separator) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// longestName is as long as the value of a label may be.
const longestName = 63

// CheckName says why a name cannot stand in the profile label of a node.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("required: the name of a profile")
	case len(name) > longestName:
		return fmt.Errorf("%.80q has %d characters, and cannot stand in a label: at most %d do", name, len(name), longestName)
	case strings.Contains(name, separator):
		return fmt.Errorf("%.80q has the %s that stands between names in the label", name, separator)
	case strings.ContainsFunc(name, func(r rune) bool { return !inLabel(r) }):
		return fmt.Errorf("%.80q cannot stand in a label: write letters, digits and any of -_. in it", name)
	}
	return nil
}

func inLabel(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
}

// LogsDetails reports whether a node's labels ask for more words.
func LogsDetails(labels map[string]string) bool { return labels[LogDetailsLabel] == "true" }
