package api

import (
	"fmt"
	"strings"

	"drydock/rules/profile"
	"drydock/rules/profile/state"
	"drydock/rules/spec"
)

// Workflow types of profiles.
const (
	// ProfilesType evaluates all nodes of a cluster by their profiles, and begins transitions.
	ProfilesType = "Profiles"
	// ProfileTransitionType carries out one transition of a profile of a node, or the triggers of a state that was entered.
	ProfileTransitionType = "ProfileTransition"
)

const (
	profilesID              = "drydock-profiles"
	profileTransitionPrefix = "profile-transition"
)

// Signals of profiles, beside the query QueryExplain of Profiles, which takes an ExplainRequest, and QueryState, QueryStatus.
const (
	// SignalProfilesChanged says that nodes have changed, or the configuration has: they are evaluated soon.
	SignalProfilesChanged = "profiles-changed"
	// SignalProfileTransitionEnded comes from a transition that ends, whatever became of it.
	SignalProfileTransitionEnded = "profile-transition-ended"
)

// ProfilesID is the workflow ID of a cluster's one Profiles.
func ProfilesID(cluster string) string { return inCluster(cluster, profilesID) }

// ProfileTransitionID is the workflow ID of what is carried out for a profile of a node, so that there is one at a time.
func ProfileTransitionID(cluster, profile, node string) string {
	return inCluster(cluster, strings.Join([]string{profileTransitionPrefix, profile, node}, "/"))
}

// ProfileTransitionIDPrefix is how the workflow IDs of a cluster's transitions begin, and those of nothing else.
func ProfileTransitionIDPrefix(cluster string) string {
	return inCluster(cluster, profileTransitionPrefix) + "/"
}

// ParseProfileTransitionID is the inverse of ProfileTransitionID; it refuses IDs of anything else.
func ParseProfileTransitionID(id string) (cluster, profile, node string, err error) {
	parts := strings.Split(id, "/")
	if len(parts) == 4 && spec.ClusterName(parts[0]) == nil {
		cluster, parts = parts[0], parts[1:]
	}
	if len(parts) != 3 || parts[0] != profileTransitionPrefix || state.CheckName(parts[1]) != nil || spec.NodeName(parts[2]) != nil {
		return "", "", "", fmt.Errorf("workflow ID %.600q is not of the form [<cluster>/]%s/<profile>/<node>", id, profileTransitionPrefix)
	}
	return cluster, parts[1], parts[2], nil
}

// ProfileTransitionInput begins a ProfileTransition. Profile and Node are those of its workflow ID. The triggers are not in it: it reads
// them from the configuration, whose values no history has.
type ProfileTransitionInput struct {
	Profile string `json:"profile"`
	Node    string `json:"node"`
	UID     string `json:"uid,omitempty"`
	// From is the state that the profile is in, and To that which it goes to; with Enter they are the same, and the triggers on
	// entering it are carried out.
	From  state.State `json:"from"`
	To    state.State `json:"to"`
	Enter bool        `json:"enter,omitempty"`
	// Index is that of the transition in its state.
	Index int `json:"index,omitempty"`
}

// ProfileTransitionEnded is the payload of SignalProfileTransitionEnded.
type ProfileTransitionEnded struct {
	Profile string `json:"profile"`
	Node    string `json:"node"`
	RunID   string `json:"runId"`
	// Error says why it was not carried out; it is decided anew then.
	Error string `json:"error,omitempty"`
}

// ProfileExplanation is the answer to the explain query of Profiles.
type ProfileExplanation struct {
	profile.Evaluation
	// History says since when each check says the same.
	History profile.History `json:"history,omitempty"`
}

// Validate tells why an input makes no sense.
func (i ProfileTransitionInput) Validate() error {
	switch {
	case state.CheckName(i.Profile) != nil:
		return fmt.Errorf("profile: %w", state.CheckName(i.Profile))
	case spec.NodeName(i.Node) != nil:
		return fmt.Errorf("node: %w", spec.NodeName(i.Node))
	case !i.From.Known() || !i.To.Known():
		return fmt.Errorf("from, to: %.80q, %.80q are not states", i.From, i.To)
	case i.Enter != (i.From == i.To):
		return fmt.Errorf("enter: %t does not go with %s to %s", i.Enter, i.From, i.To)
	case i.Index < 0:
		return fmt.Errorf("index: %d is not one", i.Index)
	}
	return nil
}
