package api

import (
	"time"

	"drydock.dev/drydock/rules/schedule"
)

// ClusterStatus is what goes on in a cluster. A part that could not be read is absent, and Unread says why.
type ClusterStatus struct {
	// Cluster is the cluster's name, where it has one.
	Cluster string    `json:"cluster,omitempty"`
	At      time.Time `json:"at"`
	// Attention is what is wrong, and what waits for a person.
	Attention []Attention `json:"attention"`
	// MoreAttention counts what is left out of Attention.
	MoreAttention int                  `json:"moreAttention,omitempty"`
	Slots         *ClusterSlots        `json:"slots,omitempty"`
	Maintenances  *ClusterMaintenances `json:"maintenances,omitempty"`
	Plans         *ClusterPlans        `json:"plans,omitempty"`
	HealthChecks  *ClusterHealthChecks `json:"healthChecks,omitempty"`
	// Profiles is absent also where no profiles are evaluated.
	Profiles *ClusterProfiles `json:"profiles,omitempty"`
	Unread   []UnreadPart     `json:"unread,omitempty"`
	// NoWorker: no worker answers, so that nothing goes on.
	NoWorker bool `json:"noWorker,omitempty"`
}

// UnreadPart is a part of a ClusterStatus that could not be read.
type UnreadPart struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}

// Attention is something that is wrong or waits for a person.
type Attention struct {
	// About names what it is about: a node, "plan kernel", "the scheduler".
	About string     `json:"about"`
	What  string     `json:"what"`
	Since *time.Time `json:"since,omitempty"`
	// Next are the commands that come next: one of them is enough.
	Next []string `json:"next,omitempty"`
}

// ClusterSlots are the limits, and the slots by them.
type ClusterSlots struct {
	Limits     LimitsInForce     `json:"limits"`
	Freezes    []schedule.Freeze `json:"freezes,omitempty"`
	Rebuilding bool              `json:"rebuilding,omitempty"`
	// Nodes and Unavailable count the cluster's nodes. UnavailableOthers are the unavailable nodes that no maintenance holds, the first of
	// them.
	Nodes             int                        `json:"nodes"`
	Unavailable       int                        `json:"unavailable"`
	UnavailableOthers []schedule.UnavailableNode `json:"unavailableOthers,omitempty"`
	ObservedAt        *time.Time                 `json:"observedAt,omitempty"`
	// InUse counts the slots of maintenances, and HeldNodes the nodes of which maintenances and profiles have a slot.
	InUse     int `json:"inUse"`
	HeldNodes int `json:"heldNodes"`
	// Waiting are the first of those that wait for a slot, in their order; WaitingAll counts all.
	Waiting    []PendingRequest `json:"waiting"`
	WaitingAll int              `json:"waitingAll"`
}

// ClusterMaintenances are the maintenances that run.
type ClusterMaintenances struct {
	// Running counts them; AtLeast says that there are more.
	Running int  `json:"running"`
	AtLeast bool `json:"atLeast,omitempty"`
	// Phases counts those that were asked by their phase. One whose phase is not known is not counted.
	Phases map[Phase]int `json:"phases"`
	// First are the first of those that do not wait for a slot, those that wait for a person before the others. More counts the rest.
	First Maintenances `json:"first"`
	More  int          `json:"more,omitempty"`
}

// ClusterPlans are the plans that run: the first of them, and how many more there are.
type ClusterPlans struct {
	First []PlanSummary `json:"first"`
	More  int           `json:"more,omitempty"`
}

// ClusterHealthChecks are the health checks that run: the first of them, and how many more there are.
type ClusterHealthChecks struct {
	First []ClusterHealthCheck `json:"first"`
	More  int                  `json:"more,omitempty"`
}

// ClusterHealthCheck is a health check in a ClusterStatus.
type ClusterHealthCheck struct {
	Name string `json:"name"`
	// Phase is absent if no worker has said what it is.
	Phase string `json:"phase,omitempty"`
	// Observed, Healthy, Unhealthy and Remediating count its nodes.
	Observed    int `json:"observed"`
	Healthy     int `json:"healthy"`
	Unhealthy   int `json:"unhealthy"`
	Remediating int `json:"remediating"`
	// Message says in words why it is in its phase, or what it waits for.
	Message string `json:"message,omitempty"`
}

// ClusterProfiles are the nodes by their profiles.
type ClusterProfiles struct {
	// Problem says why the file is not in force as it stands, Stopped why no node is evaluated.
	Problem string         `json:"problem,omitempty"`
	Stopped string         `json:"stopped,omitempty"`
	Counts  []ProfileCount `json:"counts"`
	// MoreCounts is how many counts are left out.
	MoreCounts int `json:"moreCounts,omitempty"`
	// InMaintenance are the nodes that profiles hold in maintenance.
	InMaintenance HeldByProfiles `json:"inMaintenance"`
}
