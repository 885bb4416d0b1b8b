package show

import "drydock.dev/drydock/api"

// Scheduler is the scheduler's state for programs: its lists are whole, however long they are.
type Scheduler struct {
	api.State
	Holders []api.Holder         `json:"holders"`
	Pending []api.PendingRequest `json:"pending"`
}

// SchedulerOf is a state as programs read it.
func SchedulerOf(s api.State) Scheduler {
	return Scheduler{State: s, Holders: s.Holders, Pending: s.Pending}
}
