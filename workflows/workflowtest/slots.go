package workflowtest

import (
	"encoding/json"
	"time"

	"drydock.dev/drydock/api"
)

// slots are the scheduler's side of a maintenance.
type slots struct {
	// Scheduler answers a signal of the maintenance; nil grants every request at once.
	Scheduler func(signal string, arg any) error
	// Freeze is sent to the maintenance after each grant.
	Freeze []string
	// Requested and Released count the signals to the scheduler, per request; refused are the requests that it
	// refused.
	Requested, Released map[string]int
	refused             map[string]bool
	RequestTimes        []time.Time
	// granted is the request that was granted last, frozen what the scheduler says of it when it is asked.
	granted                 string
	frozen                  api.SlotHeld
	schedulerID, lockstepID string
	// Progress is what the maintenance has reported to the lockstep. LockstepAway is the error if the lockstep does not run.
	Progress     []api.NodeProgress
	LockstepAway error
	// Reports are the maintenance's, by the workflow that it reports to, and ReportsFail is the error if that does not run.
	Reports     map[string][]api.MaintenanceReport
	ReportsFail error
}

// toScheduler is the scheduler as a maintenance sees it.
func (s *Site) toScheduler(id, run, name string, arg any) error {
	s.note(name)
	if progress, ok := arg.(api.NodeProgress); ok && id == s.lockstepID && name == api.SignalNodeProgress {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Progress = append(s.Progress, progress)
		return s.LockstepAway
	}
	if report, ok := arg.(api.MaintenanceReport); ok && run == "" {
		return s.takeReport(id, report)
	}
	if id != s.schedulerID || run != "" {
		s.t.Errorf("signal %s went to workflow %q run %q, want the scheduler's present run", name, id, run)
	}
	answer := s.Scheduler
	if answer == nil {
		answer = func(signal string, arg any) error {
			if r, ok := arg.(api.SlotRequest); ok {
				s.Grant(r.ID)
			}
			return nil
		}
	}
	arg = s.ours(name, arg)
	err := answer(name, arg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch arg := arg.(type) {
	case api.SlotRequest:
		s.Requested[arg.ID]++
		s.RequestTimes = append(s.RequestTimes, s.Env.Now())
	case api.SlotRelease:
		s.Released[arg.RequestID]++
	default:
		s.t.Errorf("signal %s carries %T", name, arg)
	}
	return nil
}

func (s *Site) takeReport(id string, report api.MaintenanceReport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Reports == nil {
		s.Reports = map[string][]api.MaintenanceReport{}
	}
	s.Reports[id] = append(s.Reports[id], report)
	return s.ReportsFail
}

// ours is what a maintenance of an earlier release says, in the types of this one.
func (s *Site) ours(signal string, arg any) any {
	switch arg.(type) {
	case api.SlotRequest, api.SlotRelease:
		return arg
	}
	text, err := json.Marshal(arg)
	if err == nil && signal == api.SignalSlotRequest {
		var request api.SlotRequest
		err = json.Unmarshal(text, &request)
		arg = request
	} else if err == nil && signal == api.SignalSlotRelease {
		var release api.SlotRelease
		err = json.Unmarshal(text, &release)
		arg = release
	}
	if err != nil {
		s.t.Errorf("signal %s: %v", signal, err)
	}
	return arg
}

// Grant grants a slot request, and sends the freezes in force.
func (s *Site) Grant(request string) {
	s.Env.SignalWorkflow(api.SignalSlotGranted, api.SlotAnswer{RequestID: request})
	s.granted = request
	if len(s.Freeze) > 0 {
		s.Hold(s.Freeze...)
	}
}

// HoldAt has freezes hold the maintenance after a time; none lets it go on.
func (s *Site) HoldAt(d time.Duration, reasons ...string) *Site {
	return s.At(d, func() { s.Hold(reasons...) })
}

// Hold has freezes hold the maintenance, as its scheduler knows and says.
func (s *Site) Hold(reasons ...string) {
	s.mu.Lock()
	s.frozen.Frozen, s.frozen.Revision = reasons, s.frozen.Revision+1
	notice := api.FreezeNotice{RequestID: s.granted, Revision: s.frozen.Revision, Reasons: reasons}
	s.mu.Unlock()
	s.Env.SignalWorkflow(api.SignalHold, notice)
}

// Refuse turns a slot request down: nobody gives that slot back.
func (s *Site) Refuse(request string, a api.SlotAnswer) {
	s.mu.Lock()
	s.refused[request] = true
	s.mu.Unlock()
	a.RequestID = request
	s.Env.SignalWorkflow(api.SignalSlotRefused, a)
}
