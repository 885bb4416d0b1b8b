package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"drydock.dev/drydock/rules/schedule"
)

// Scheduler is the scheduler's state for programs: its lists are whole, however long they are.
type Scheduler struct {
	State
	Holders []Holder         `json:"holders"`
	Pending []PendingRequest `json:"pending"`
}

// SchedulerOf is a state as programs read it.
func SchedulerOf(s State) Scheduler {
	return Scheduler{State: s, Holders: s.Holders, Pending: s.Pending}
}

// LimitDifference is a limit that is not the same on both sides; an empty side has none.
type LimitDifference struct {
	Limit   string `json:"limit"`
	InForce string `json:"inForce,omitempty"`
	File    string `json:"file,omitempty"`
}

// LimitDifferences are the limits that are not the same in force and in a file, by their names.
func LimitDifferences(inForce, file schedule.Limits) []LimitDifference {
	a, b := limitTexts(inForce.WithDefaults()), limitTexts(file.WithDefaults())
	all := maps.Clone(a)
	maps.Copy(all, b)
	different := []LimitDifference{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			different = append(different, LimitDifference{Limit: name, InForce: a[name], File: b[name]})
		}
	}
	return different
}

// limitTexts are the limits by name. Groups are told apart by their names, so that their order does not count.
func limitTexts(l schedule.Limits) map[string]string {
	texts := map[string]string{
		"maxParallel": l.MaxParallel.String(), "maxUnavailable": l.MaxUnavailable.String(), "remediations": l.Remediations.String(),
		"windows": strings.Join(l.Windows, ", "), "quotas.pendingPerRequestor": quotaText(l.Quotas.PendingPerRequestor),
		"quotas.heldPerRequestor": quotaText(l.Quotas.HeldPerRequestor),
	}
	for _, g := range l.Groups {
		at := "groups." + g.Name + "."
		texts[at+"nodes"], texts[at+"windows"] = g.Nodes(), strings.Join(g.Windows, ", ")
		texts[at+"maxParallel"], texts[at+"maxUnavailable"] = g.MaxParallel.String(), g.MaxUnavailable.String()
	}
	for requestor, own := range l.Quotas.Requestors {
		at := "quotas.requestors." + requestor + "."
		texts[at+"pending"], texts[at+"held"] = quotaText(own.Pending), quotaText(own.Held)
	}
	return texts
}

func quotaText(most *int) string {
	if most == nil {
		return ""
	}
	return strconv.Itoa(*most)
}
