package scheduler

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/rules/schedule"
)

// subject is what the scheduler does otherwise since 0.1.0. Each has a change ID of its own: where a worker of 0.1.0 decides again after
// one of a later release, what the later one has done so far says nothing of the rest.
type subject string

const (
	laterRequests  subject = "requests"           // windows, gangs, remediations and other kinds of holders are understood
	otherHolders   subject = "holder-kinds"       // others than maintenances hold slots
	silentHolders  subject = "silent-holders"     // those that do not answer may hold slots
	localLooks     subject = "glances"            // nodes are observed by a local activity
	grantsTogether subject = "grants-together"    // many grants are sent by one activity
	laterReasons   subject = "reasons-later"      // reasons that were not sent are sent later
	updateTurns    subject = "updates-in-turn"    // updates that wait keep their order
	restoredState  subject = "freeze-if-restored" // grants stop where Temporal was restored to an earlier state
)

// isUpgraded reports whether the history has come to a worker of a release after 0.1.0, for one subject. What a worker of 0.1.0 decided
// before that is repeated as it was. The change ID names the place in the history, since the answer to one ID holds for the rest of a run.
func (s *scheduler) isUpgraded(in subject) bool {
	if s.upgraded[in] {
		return true
	}
	id := fmt.Sprintf("%s-after-0.1.0-at-%d", in, workflow.GetInfo(s.ctx).GetCurrentHistoryLength())
	s.upgraded[in] = workflow.GetVersion(s.ctx, id, workflow.DefaultVersion, 1) != workflow.DefaultVersion
	return s.upgraded[in]
}

// findKinds has the kinds of holders found out anew, once there are several: 0.1.0 took each for a maintenance.
func (s *scheduler) findKinds() {
	if s.kindsDropped && s.isUpgraded(otherHolders) {
		s.kindsDropped = false
		s.requireRebuild("0.1.0 took every holder for a maintenance")
	}
}

// isLater reports whether a request says what 0.1.0 does not know, and refuses. It is repeated until it is answered.
func isLater(r schedule.Request) bool {
	namesWindows := len(r.Windows) > 0 || r.ExpectedDuration > 0 || r.IgnoreWindows != ""
	return namesWindows || r.Gang != nil || r.Remediation || r.Kind != schedule.KindMaintenance
}

// dropKind makes a maintenance of a holder or a request where 0.1.0 takes it for one.
func (s *scheduler) dropKind(remediation *bool, kind *schedule.HolderKind) {
	if (*remediation || *kind != schedule.KindMaintenance) && !s.isUpgraded(otherHolders) {
		*remediation, *kind, s.kindsDropped = false, schedule.KindMaintenance, true
	}
}

// asDecided adds the windows to the input of a decision. Where 0.1.0 decided, it leaves out what that does not know.
func (s *scheduler) asDecided(in schedule.Input) schedule.Input {
	hasWindows := func(g schedule.Group) bool { return len(g.Windows) > 0 }
	if len(in.Limits.Windows) == 0 && !slices.ContainsFunc(in.Limits.Groups, hasWindows) && !slices.ContainsFunc(in.Pending, isLater) {
		return in
	}
	if s.isUpgraded(laterRequests) {
		in.Now, in.Horizon, in.HorizonTrouble = s.now(), s.Horizon, s.hours.trouble
		return in
	}
	in.Limits.Windows, in.Limits.Groups = nil, slices.Clone(in.Limits.Groups)
	for i := range in.Limits.Groups {
		in.Limits.Groups[i].Windows = nil
	}
	for i, r := range in.Pending {
		in.Pending[i] = as010(r)
	}
	return in
}

// as010 is a request as 0.1.0 reads it in a state or in an answer.
func as010(r schedule.Request) schedule.Request {
	return schedule.Request{ID: r.ID, Node: r.Node, Requestor: r.Requestor, Priority: r.Priority, Created: r.Created}
}
