package spec

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"drydock.dev/drydock/rules/visible"
)

// ReportTo is the workflow that a maintenance reports to, in the same namespace.
type ReportTo struct {
	// Workflow is its workflow ID.
	Workflow string `json:"workflow" jsonschema:"required,minLength=1,maxLength=1000"`
	// Signal is the name of the signal that it is sent.
	Signal string `json:"signal" jsonschema:"required,minLength=1,maxLength=255"`
}

// maxWorkflowID is how long Temporal lets a workflow ID be, and maxSignal is how long a signal's name may be here, both in bytes.
const (
	maxWorkflowID = 1000
	maxSignal     = 255
)

// Validate returns what is wrong with it; the error joins one line per wrong field.
func (r ReportTo) Validate() error {
	var p problems
	p.check("workflow", nameOnWire(r.Workflow, maxWorkflowID))
	p.check("signal", nameOnWire(r.Signal, maxSignal))
	if strings.HasPrefix(r.Signal, "__temporal") {
		p.add("signal", fmt.Sprintf("%q: such names are the server's own", r.Signal))
	}
	return errors.Join(p...)
}

func nameOnWire(name string, most int) error {
	switch {
	case name == "":
		return errors.New("must not be empty")
	case len(name) > most:
		return fmt.Errorf("has %d bytes: at most %d are taken", len(name), most)
	case !utf8.ValidString(name) || visible.Line(name) != name:
		return fmt.Errorf("%q has characters that nobody sees", name)
	}
	return nil
}

// validateReportTo refuses what a Kubernetes object asks for, whose author need not be somebody who may signal workflows, and what plans
// share, which reports to them.
func (m Maintenance) validateReportTo(p *problems) {
	switch {
	case m.Object != nil:
		p.add("reportTo", "a Kubernetes object cannot ask for it: read the object's status instead")
	case m.Lockstep:
		p.add("reportTo", "a maintenance that plans share reports to them: leave it out")
	default:
		p.section("reportTo", m.ReportTo.Validate())
	}
}
