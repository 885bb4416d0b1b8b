package record

import (
	"strconv"
	"time"

	"drydock.dev/drydock/rules/document"
)

// Remediation is what is kept of the remediation of a node by a health check; maintenances that it has begun have records of their own.
type Remediation struct {
	Check string `json:"check"`
	// Why says what the node had, Since since when.
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Recovered: it ended because the node was healthy again, or gone.
	Recovered bool `json:"recovered,omitempty"`
	// Steps are those that have begun or have failed to; MoreSteps counts those left out.
	Steps     []RemediationStep `json:"steps,omitempty"`
	MoreSteps int               `json:"moreSteps,omitempty"`
}

// RemediationStep is a step of a remediation and what became of it.
type RemediationStep struct {
	// Step counts from 1.
	Step int `json:"step"`
	// What is the remediation object, as its kind, namespace and name, or the workflow ID of the maintenance.
	What      string    `json:"what,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// TimedOut is when its time was over, Succeeded what the remediator said; nil is nothing.
	TimedOut  *time.Time `json:"timedOut,omitempty"`
	Succeeded *bool      `json:"succeeded,omitempty"`
	Failure   string     `json:"failure,omitempty"`
}

// MaxSteps bounds the steps in the record of a remediation.
const MaxSteps = 50

// remediationTable lists the steps of a remediation.
func remediationTable(r *Remediation, when func(time.Time) string) document.Table {
	t := document.Table{Title: "Steps", Header: []string{"Step", "What", "Begun", "Timed out", "Outcome"}}
	if r == nil {
		return t
	}
	for _, s := range r.Steps {
		timedOut, outcome := "", s.Failure
		if s.TimedOut != nil {
			timedOut = when(*s.TimedOut)
		}
		if s.Succeeded != nil && *s.Succeeded {
			outcome = "succeeded"
		}
		t.Add(strconv.Itoa(s.Step), s.What, when(s.StartedAt), timedOut, outcome)
	}
	if r.MoreSteps > 0 {
		t.Add("and "+strconv.Itoa(r.MoreSteps)+" more", "", "", "", "")
	}
	return t
}
