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
	granted string
	frozen  api.SlotHeld
	cluster string
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
	report, isReport := arg.(api.MaintenanceReport)
	switch {
	case id == api.LockstepID(s.cluster) && name == api.SignalNodeProgress:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Progress = append(s.Progress, as[api.NodeProgress](s, arg))
		return s.LockstepAway
	case isReport && run == "":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Reports[id] = append(s.Reports[id], report)
		return s.ReportsFail
	case id != api.SchedulerID(s.cluster) || run != "":
		s.t.Errorf("signal %s went to workflow %q run %q, want the scheduler's present run", name, id, run)
	}
	switch name {
	case api.SignalSlotRequest:
		arg = as[api.SlotRequest](s, arg)
	case api.SignalSlotRelease:
		arg = as[api.SlotRelease](s, arg)
	}
	switch request, asks := arg.(api.SlotRequest); {
	case s.Scheduler != nil:
		if err := s.Scheduler(name, arg); err != nil {
			return err
		}
	case asks:
		s.Grant(request.ID)
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

// as is what an activity, or a maintenance of an earlier release, sends, in the types of this release.
func as[T any](s *Site, sent any) (payload T) {
	text, err := json.Marshal(sent)
	if err == nil {
		err = json.Unmarshal(text, &payload)
	}
	if err != nil {
		s.t.Errorf("%T: %v", sent, err)
	}
	return payload
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
