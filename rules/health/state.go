package health

import "time"

// State is all that a check remembers; it outlives its runs.
type State struct {
	// Seen is the latest observation's share that is not about single nodes.
	Seen Seen `json:"seen"`
	// Nodes are those that match, those under remediation, and those that have to be remembered, by name.
	Nodes Nodes `json:"nodes,omitempty"`
	// Pauses are the requests of people that nothing new begins, beside Spec.PauseRequests.
	Pauses []Pause `json:"pauses,omitempty"`
	Storm  Storm   `json:"storm,omitzero"`
	// Disabled is why the check is disabled, as it was announced last; DisabledAt since when.
	Disabled   string    `json:"disabled,omitempty"`
	DisabledAt time.Time `json:"disabledAt,omitzero"`
	// AnnouncedBlock is what keeps anything from beginning, as it was announced last.
	AnnouncedBlock string `json:"announcedBlock,omitempty"`
	// Overlap is the overlapping check that was announced last.
	Overlap string `json:"overlap,omitempty"`
}

// Seen is what the latest observation says of the cluster.
type Seen struct {
	At time.Time `json:"at,omitzero"`
	// Groups are by their names.
	Groups []GroupCount `json:"groups,omitempty"`
	// Known: all parts of a full observation with the present selector and conditions are there. Before that nothing is decided
	// about nodes.
	Known bool `json:"known,omitempty"`
	// Parts: some of a full observation are there.
	Parts bool `json:"parts,omitempty"`
	// Dropped: there were more nodes than MaxNodes.
	Dropped        bool    `json:"dropped,omitempty"`
	Upgrading      string  `json:"upgrading,omitempty"`
	Disabled       string  `json:"disabled,omitempty"`
	DisabledReason string  `json:"disabledReason,omitempty"`
	Overlap        Overlap `json:"overlap,omitzero"`
}

// Storm is since when the threshold is not met, and since when it is met again.
type Storm struct {
	ActiveSince   time.Time `json:"activeSince,omitzero"`
	CooldownSince time.Time `json:"cooldownSince,omitzero"`
	// CooldownAt is when the cooldown began or ended last.
	CooldownAt time.Time `json:"cooldownAt,omitzero"`
	// EndedAt is when the latest one ended.
	EndedAt time.Time `json:"endedAt,omitzero"`
}

// Pause is somebody's request that nothing new begins.
type Pause struct {
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at"`
}

// Nodes are in the order of their names. They are written compressed where they are many.
type Nodes []Node

// Node is what a check remembers of a node.
type Node struct {
	Facts
	// Unseen: nothing is known of the node in the present view; nothing is decided about it.
	Unseen bool `json:"unseen,omitempty"`
	// WellSince is the latest recovery of a node under remediation; zero while it matches.
	WellSince time.Time `json:"wellSince,omitzero"`
	// ConfirmedBy is who has said that the recovered node is healthy.
	ConfirmedBy string `json:"confirmedBy,omitempty"`
	// Remediation is the one that runs.
	Remediation *Running `json:"remediation,omitempty"`
	// Past is the latest remediation that ended; it is remembered for as long as it counts.
	Past *Past `json:"past,omitempty"`
	// Announced is what was announced of the node, so that nothing is announced twice.
	Announced Announced `json:"announced,omitzero"`
}

// hasTurn reports whether the node is one of the control plane that is remediated, as far as is known: one that was never seen, and whose
// remediation has not reported yet, may be.
func (n Node) hasTurn() bool {
	return n.Remediation != nil && (n.ControlPlane || n.Unseen && n.UID == "")
}

// Running is a remediation of a node.
type Running struct {
	// BeganAt is when the check ordered it, and From the step that it began with.
	BeganAt time.Time `json:"beganAt"`
	From    int       `json:"from,omitempty"`
	// Unconfirmed: there is nothing but messages in its name.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Order is the latest.
	Order Order `json:"order"`
	// Progress is the latest that the remediation said; nil before it said anything.
	Progress *Progress `json:"progress,omitempty"`
}

// Past is a remediation that has ended.
type Past struct {
	EndedAt time.Time `json:"endedAt"`
	// RunID is its first run: what it says late changes nothing.
	RunID string `json:"runId,omitempty"`
	// Step is the one that was at work.
	Step int `json:"step,omitempty"`
	// Failed counts how often one has ended without an order since the node was last healthy; RetryAt is when the next may
	// begin, and Failure why it ended.
	Failed  int       `json:"failed,omitempty"`
	RetryAt time.Time `json:"retryAt,omitzero"`
	Failure string    `json:"failure,omitempty"`
	// Trouble is what kept it from beginning, where nothing but that did.
	Trouble string `json:"trouble,omitempty"`
}

// Announced is what was announced of a node.
type Announced struct {
	Unhealthy bool `json:"unhealthy,omitempty"`
	Label     bool `json:"label,omitempty"`
	Exhausted bool `json:"exhausted,omitempty"`
	Old       bool `json:"old,omitempty"`
	Confirm   bool `json:"confirm,omitempty"`
	// Steps counts the remediation objects, Skipped is the latest reason why the node is not remediated.
	Steps   int    `json:"steps,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}
