package caller

import (
	"encoding/json"
	"strings"

	"drydock.dev/drydock/api"
)

// Subject is what the input of an activity says of the workflow that calls it, and of what that workflow is for. Fields that an
// input does not have are empty, and claim nothing.
type Subject struct {
	Node, Requestor string
	// Check and Profile are names, Plan is the name of a plan.
	Check, Profile, Plan string
	// WorkflowID is the workflow that acts, RunID the first run of its chain.
	WorkflowID, RunID string
	// Request is the slot by which the node is held, Scheduler the workflow that says whether it is, Parent the plan that gets signals.
	Request, Scheduler, Parent string
	// Spec is the specification of the maintenance, which names its node and requestor.
	Spec json.RawMessage
	// Alive: the node is taken from a workflow that may run.
	Alive bool
}

// Input is the input of an activity that acts for one node, check, profile or plan.
type Input interface {
	// About is what the input claims.
	About() Subject
}

// subjectOf is what an input claims. The second result reports whether it claims anything.
func subjectOf(input any) (Subject, bool) {
	in, ok := input.(Input)
	if !ok {
		return Subject{}, false
	}
	return in.About(), true
}

// HasSubject reports whether the claims of an input are compared with its caller.
func HasSubject(input any) bool {
	_, ok := subjectOf(input)
	return ok
}

// Check refuses an input that claims what its caller is not. Errors: ForeignCaller.
func (who Identity) Check(input any) error {
	s, ok := subjectOf(input)
	if !ok {
		return nil
	}
	return who.check(s)
}

// alone are the IDs of workflows of which a cluster has one: another of their type acts on nothing.
func (who Identity) alone() string {
	switch who.Type {
	case api.SchedulerType:
		return api.SchedulerID(who.Cluster)
	case api.LockstepType:
		return api.LockstepID(who.Cluster)
	case api.ProfilesType:
		return api.ProfilesID(who.Cluster)
	}
	return who.WorkflowID
}

// check compares. The Scheduler acts on nodes of maintenances that have ended, the Doctor and Profiles on every node of their
// cluster, a Preflight only looks.
func (who Identity) check(s Subject) error {
	own := Subject{WorkflowID: who.WorkflowID, RunID: who.FirstRunID, Scheduler: api.SchedulerID(who.Cluster), Parent: who.Parent}
	cluster, err := who.Cluster, error(nil)
	if alone := who.alone(); alone != who.WorkflowID {
		return refuse("workflow %.300q acts on nothing: the cluster's %s is %s", who.WorkflowID, who.Type, alone)
	}
	switch who.Type {
	case api.NodeMaintenanceType:
		cluster, own.Node, own.Requestor, err = api.ParseMaintenanceID(who.WorkflowID)
	case api.NodeRemediationType:
		cluster, own.Check, own.Node, err = api.ParseRemediationID(who.WorkflowID)
	case api.HealthCheckType:
		cluster, own.Check, err = api.ParseHealthCheckID(who.WorkflowID)
	case api.ProfileTransitionType:
		cluster, own.Profile, own.Node, err = api.ParseProfileTransitionID(who.WorkflowID)
		own.Requestor = api.ProfileRequestor(own.Profile)
	case api.MaintenancePlanType:
		cluster, own.Plan, err = api.ParsePlanID(who.WorkflowID)
	case api.SchedulerType:
		return who.checkOrphan(s)
	default:
		own.Node, own.Requestor = s.Node, s.Requestor
	}
	if err == nil && cluster != who.Cluster {
		return refuse("workflow %.300q is of cluster %q, and its task queue is of cluster %q", who.WorkflowID, cluster, who.Cluster)
	}
	if err != nil {
		return refuse("a workflow of type %s under this ID acts on nothing: %v", who.Type, err)
	}
	return who.compare(s, own)
}

// compare refuses the first claim that is not the caller's own.
func (who Identity) compare(s, own Subject) error {
	claimed, err := s.specified()
	if err != nil {
		return err
	}
	if own.RunID == "" {
		s.RunID = "" // an old server does not say which run is the first
	}
	for _, one := range []struct{ field, claimed, own string }{
		{"node", s.Node, own.Node}, {"node", claimed.Node, own.Node},
		{"requestor", s.Requestor, own.Requestor}, {"requestor", claimed.Requestor, own.Requestor},
		{"check", s.Check, own.Check}, {"profile", s.Profile, own.Profile}, {"plan", s.Plan, own.Plan},
		{"workflow", s.WorkflowID, own.WorkflowID}, {"first run", s.RunID, own.RunID},
		{"scheduler", s.Scheduler, own.Scheduler}, {"plan", s.Parent, own.Parent},
	} {
		if one.claimed != "" && one.claimed != one.own {
			return refuse("workflow %.300q is of %s %.100q, and its input names %.100q", who.WorkflowID, one.field, one.own, one.claimed)
		}
	}
	if s.Request != "" && own.RunID != "" && !strings.HasPrefix(s.Request, own.RunID+"/") {
		return refuse("slot request %.100q is not one of workflow %.300q, whose first run is %s", s.Request, who.WorkflowID, own.RunID)
	}
	return nil
}

// checkOrphan refuses whatever is not about one of the scheduler's own cluster that may hold a slot. Nodes are released only of
// maintenances, which mark them, and only of those that have ended.
func (who Identity) checkOrphan(s Subject) error {
	cluster, node, err := api.ParseHolderID(s.WorkflowID)
	if s.Node != "" && err == nil {
		_, _, _, err = api.ParseMaintenanceID(s.WorkflowID)
	}
	switch {
	case err != nil:
		return refuse("the scheduler acts on those that hold slots, and on nodes of maintenances: %v", err)
	case cluster != who.Cluster || s.Node != "" && node != s.Node:
		return refuse("the scheduler of cluster %q does not act on node %.100q for workflow %.300q", who.Cluster, s.Node, s.WorkflowID)
	case s.Alive:
		return refuse("the scheduler releases nodes only of maintenances that have ended: %.300q may run", s.WorkflowID)
	}
	return nil
}

// specified is what the specification names. One that cannot be read is refused by what judges it.
func (s Subject) specified() (named struct{ Node, Requestor string }, err error) {
	if len(s.Spec) == 0 {
		return named, nil
	}
	if json.Unmarshal(s.Spec, &named) != nil {
		return struct{ Node, Requestor string }{}, refuse("maintenance: it is no specification")
	}
	return named, nil
}
