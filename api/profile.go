package api

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/spec"
)

// Workflow types of profiles.
const (
	// ProfilesType evaluates all nodes of a cluster by their profiles, and begins transitions.
	ProfilesType = "Profiles"
	// ProfileTransitionType carries out one transition of a profile of a node, or the triggers of a state that was entered.
	ProfileTransitionType = "ProfileTransition"
	// ProfileReportType reports what becomes of nodes by their profiles, and why. It takes a ProfileReportInput, returns
	// a ProfileReport, and changes nothing.
	ProfileReportType = "ProfileReport"
)

const (
	profilesID              = "drydock-profiles"
	profileTransitionPrefix = "profile-transition"
	profileReportPrefix     = "profile-report"
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

// ProfileReportID is the workflow ID of one report.
func ProfileReportID(cluster, occasion string) string {
	return inCluster(cluster, profileReportPrefix+"/"+occasion)
}

// longestInRequestor is how much of a profile's name is in a requestor as it is.
const longestInRequestor = 40

// ProfileRequestor is the requestor of the maintenances of a profile. A profile's name that cannot be a requestor is replaced
// by a digest.
func ProfileRequestor(profile string) string {
	requestor := ProfileRequestorPrefix + profile
	if len(profile) <= longestInRequestor && spec.RequestorName(requestor) == nil {
		return requestor
	}
	sum := sha256.Sum256([]byte(profile))
	return fmt.Sprintf("%s%s.%x", ProfileRequestorPrefix, profile[:min(len(profile), longestInRequestor)], sum[:4])
}

// ProfileRequestorPrefix begins the requestors of profiles, and should begin no others.
const ProfileRequestorPrefix = "profile-"

// ProfilesState is the answer to the query QueryState of Profiles.
type ProfilesState struct {
	// Waiting says what has to be known before anything is decided, Problem why the file is not in force as it stands.
	Waiting string `json:"waiting,omitempty"`
	Problem string `json:"problem,omitempty"`
	// UnderWay are transitions, Failed those that were not carried out a while ago.
	UnderWay []ProfileUnderWay `json:"underWay,omitempty"`
	Failed   []ProfileUnderWay `json:"failed,omitempty"`
	Sending  int               `json:"sending,omitempty"`
	// Troubles are what fails and is tried again.
	Troubles []Trouble          `json:"troubles,omitempty"`
	Notes    []RecordedDecision `json:"notes,omitempty"`
}

// ProfileUnderWay is a transition of a profile of a node.
type ProfileUnderWay struct {
	// RunID is the first run of its workflow, empty before that has begun.
	RunID   string `json:"runId,omitempty"`
	Profile string `json:"profile"`
	Node    string `json:"node"`
	UID     string `json:"uid,omitempty"`
	profile.Busy
}

// ProfileTransitionInput begins a ProfileTransition, which only Profiles may. Profile and Node are those of its workflow ID. It
// names triggers; what they are configured with is read from the file when they are carried out, and no history has it.
type ProfileTransitionInput struct {
	Profile string `json:"profile"`
	Node    string `json:"node"`
	UID     string `json:"uid"`
	// From is the state that the profile is in, and To that which it goes to; with Enter they are the same, and the triggers on
	// entering it are carried out.
	From  state.State `json:"from"`
	To    state.State `json:"to"`
	Enter bool        `json:"enter,omitempty"`
	// Since is when the profile came into From: what was decided then is not done in a later state of the same name.
	Since time.Time `json:"since"`
	// Check is the expression that held, for people.
	Check    string   `json:"check,omitempty"`
	Triggers []string `json:"triggers,omitempty"`
	// Claims are Leases to take before anything is done.
	Claims []check.Claim `json:"claims,omitempty"`
	// Maintained is the first run of the maintenance that the profile has had for the state that it leaves, which is done with it.
	Maintained string `json:"maintained,omitempty"`
	// OwnSlot: the first trigger that takes the node out of service begins a maintenance, which asks for the slot of the node itself.
	OwnSlot bool `json:"ownSlot,omitempty"`
}

// NeedsSlot reports whether the transition takes the node out of service by itself: it needs the scheduler's slot for that.
func (in ProfileTransitionInput) NeedsSlot() bool {
	return in.To == state.Maintenance && in.From != in.To && !in.Enter && !in.OwnSlot
}

// ProfileTransitionEnded is the result of a ProfileTransition.
type ProfileTransitionEnded struct {
	// Moved is since when the profile is in its new state by the annotation; with the triggers of a state that was entered, when
	// these were done. Zero is that nothing was written, and Error says why: it is decided anew then.
	Moved time.Time `json:"moved,omitzero"`
	Error string    `json:"error,omitempty"`
	// Waits: it has no slot, and nothing was done. OpensAt is when the windows that it waits for are open next, zero if it waits for none
	// or that is not known.
	Waits   bool      `json:"waits,omitempty"`
	OpensAt time.Time `json:"opensAt,omitzero"`
}

// ProfileReportInput asks for a report. The zero value lists all nodes, the first hundred of them.
type ProfileReportInput struct {
	// Node has this node explained; the other fields do not go with it.
	Node string `json:"node,omitempty"`
	// Profile and State list only nodes that have such a profile, in such a state.
	Profile string      `json:"profile,omitempty"`
	State   state.State `json:"state,omitempty"`
	// After lists the nodes after this name, Limit so many at most: 100 where it is 0, and MaxProfileReport at most.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// MaxProfileReport bounds the nodes of one report.
const MaxProfileReport = 1000

// ProfileReport is what becomes of nodes by their profiles.
type ProfileReport struct {
	At time.Time `json:"at"`
	// Problem says why the file is not in force as it stands: the one before is.
	Problem string `json:"problem,omitempty"`
	// Stopped says that nothing is evaluated, and why.
	Stopped string `json:"stopped,omitempty"`
	// Counts are all nodes of the cluster by profile and state.
	Counts []ProfileCount `json:"counts,omitempty"`
	Nodes  []ProfileNode  `json:"nodes,omitempty"`
	// Next is what After has to be for the nodes that follow; empty if there are none.
	Next string `json:"next,omitempty"`
	// Explanation is that of the node in the request, Lines the same in words.
	Explanation *ProfileExplanation `json:"explanation,omitempty"`
	Lines       []string            `json:"lines,omitempty"`
}

// ProfileNodes is what becomes of nodes by their profiles, for programs.
type ProfileNodes struct {
	At time.Time `json:"at"`
	// Problem says why the file is not in force as it stands: the one before is.
	Problem string `json:"problem,omitempty"`
	// Stopped says that no node is evaluated, and why.
	Stopped string `json:"stopped,omitempty"`
	// Counts are all nodes of the cluster by profile and state, whatever was asked for.
	Counts []ProfileCount `json:"counts"`
	Nodes  []ProfileNode  `json:"nodes"`
}

// Names are those of the nodes.
func (n ProfileNodes) Names() []string {
	return namesOf(n.Nodes, func(one ProfileNode) string { return one.Node })
}

// ProfileCount is how many nodes have a profile in a state.
type ProfileCount struct {
	Profile string      `json:"profile"`
	State   state.State `json:"state"`
	Nodes   int         `json:"nodes"`
	// Failing is the number of nodes on which a check of the profile fails.
	Failing int `json:"failing,omitempty"`
}

// ProfileNode is one node of a report.
type ProfileNode struct {
	Node string `json:"node"`
	// State is the most crucial of its profiles. Problem says why nothing can be decided for it.
	State    state.State   `json:"state,omitempty"`
	Problem  string        `json:"problem,omitempty"`
	Profiles []NodeProfile `json:"profiles,omitempty"`
}

// HeldByProfiles are nodes that profiles hold in maintenance, the first of them; More: there are others.
type HeldByProfiles struct {
	Nodes []ProfileNode `json:"nodes,omitempty"`
	More  bool          `json:"more,omitempty"`
}

// NodeProfile is one profile of a node.
type NodeProfile struct {
	Profile string `json:"profile"`
	// Unknown: the configuration does not have it.
	Unknown bool        `json:"unknown,omitempty"`
	State   state.State `json:"state,omitempty"`
	Since   time.Time   `json:"since,omitzero"`
	// Busy is what is under way, Failure why what was under way last was not carried out.
	Busy    *profile.Busy `json:"busy,omitempty"`
	Failure string        `json:"failure,omitempty"`
	// Waiting are the checks that keep it in its state, with a ! those that ought not to hold.
	Waiting []string `json:"waiting,omitempty"`
	// Failing are the checks that fail, in any state: they do not know whether they hold. An explanation says why.
	Failing []string `json:"failing,omitempty"`
}

// ProfileExplanation says of a node which checks hold, which do not, why, and since when.
type ProfileExplanation struct {
	profile.Evaluation
	// History says since when each check says the same, as far back as a worker has looked.
	History profile.History `json:"history,omitempty"`
}

const (
	// MaxProfileTriggers bounds the triggers, and the Leases, of one transition.
	MaxProfileTriggers = 200
	maxProfileUID      = 100
)

// Validate says why an input makes no sense.
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
	case i.UID == "" || len(i.UID) > maxProfileUID:
		return fmt.Errorf("uid: %.80q is not that of a node", i.UID)
	case len(i.Triggers) > MaxProfileTriggers || len(i.Claims) > MaxProfileTriggers:
		return fmt.Errorf("triggers, claims: %d, %d: at most %d of each are carried out", len(i.Triggers), len(i.Claims), MaxProfileTriggers)
	}
	return nil
}
