package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/drainplan"
)

// MaxRequestors bounds those who share a maintenance.
const MaxRequestors = 64

// MaxText bounds reason and ticket, which are copied into events, lists and annotations.
const MaxText = 1024

var requestorName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// Validate checks a maintenance with its defaults filled in; the error joins one line per wrong field.
func (m Maintenance) Validate() error {
	var p problems
	p.check("node", NodeName(m.Node))
	p.check("requestor", RequestorName(m.Requestor))
	if extra := len(m.Requestors()) - MaxRequestors; extra > 0 {
		p.add("additionalRequestors", fmt.Sprintf("%d more than %d share the maintenance", extra, MaxRequestors))
	}
	for i, name := range m.AdditionalRequestors {
		p.check(fmt.Sprintf("additionalRequestors[%d]", i), RequestorName(name))
	}
	p.check("priority", Priority(m.Priority))
	p.text("reason", m.Reason)
	p.text("ticket", m.Ticket)
	p.text("owner", m.Owner)
	if d := m.ApprovalReminder; d > 0 && d.Std() < time.Minute {
		p.add("approvalReminder", fmt.Sprintf("%s is too often: want 1m or more, or 0s for never", d))
	}
	p.oneOf("type", m.Type, Planned, Unplanned)
	p.oneOf("preflight", m.Preflight, PreflightOff, PreflightWait, PreflightFail)
	p.oneOf("onReadyTimeout", m.OnReadyTimeout, FailOnTimeout, ReleaseOnTimeout)
	p.oneOf("onNodeReplaced", m.OnNodeReplaced, AdoptReplacement, EndOnReplacement)
	if m.WaitForPodCompletion != nil {
		p.selector("waitForPodCompletion.podSelector", m.WaitForPodCompletion.PodSelector)
	}
	m.validateWindows(&p)
	m.Drain.validate(&p)
	m.validateSLA(&p)
	p.section("hooks", m.Hooks.Validate())
	if m.Validation != nil {
		p.section("validation", m.Validation.Validate())
	}
	p.check("work", m.checkWork())
	if m.Lockstep {
		m.validateShared(&p)
	}
	if m.Remediation != nil {
		m.validateRemediation(&p)
	}
	if m.Object != nil {
		m.Object.validate(&p)
	}
	if m.ReportTo != nil {
		m.validateReportTo(&p)
	}
	if m.OutOfService {
		m.validateOutOfService(&p)
	}
	if m.Notify != nil {
		for i, name := range *m.Notify {
			p.check(fmt.Sprintf("notify[%d]", i), ChannelName(name))
		}
	}
	return errors.Join(p...)
}

func (m Maintenance) validateSLA(p *problems) {
	if m.SLA == nil {
		return
	}
	if m.SLA.After == 0 {
		p.add("sla.after", "must be more than 0s: it is the time since the cordon in which the node is to be empty")
	}
	if m.SLA.Do != "" {
		p.oneOf("sla.do", m.SLA.Do, Rungs...)
		if err := RungFits(m.SLA.Do, m.Drain.Mode); err != nil {
			*p = append(*p, fmt.Errorf("sla.%w", err))
		}
	}
	for _, rung := range m.Drain.Escalation {
		if EndsDrain(rung.Do) && rung.After < m.SLA.After {
			p.add("sla.after", fmt.Sprintf("%s is later than the rung %s (%s), which ends the drain: set drain.escalation too",
				m.SLA.After, rung.Do, rung.After))
		}
	}
}

// ChannelName checks the name of a channel of the worker's configuration.
func ChannelName(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%q is not the name of a channel: %s", name, wrong[0])
	}
	return nil
}

func (d Drain) validate(p *problems) {
	p.oneOf("drain.mode", d.Mode, ModeEvict, ModeWait, ModeExternal, ModeNone)
	p.selector("drain.podSelector", d.PodSelector)
	d.Namespaces.validate(p)
	for i, filter := range d.PodEvictionFilters {
		field := fmt.Sprintf("drain.podEvictionFilters[%d].byResourceNameRegex", i)
		if filter.ByResourceNameRegex == "" {
			p.add(field, "must not be empty: it would match every resource")
		} else if _, err := regexp.Compile(filter.ByResourceNameRegex); err != nil {
			p.add(field, err.Error())
		}
	}
	if d.GracePeriodSeconds != nil && *d.GracePeriodSeconds < 0 {
		p.add("drain.gracePeriodSeconds", fmt.Sprintf("%d is negative; leave it out to keep each pod's own", *d.GracePeriodSeconds))
	}
	p.oneOf("drain.via", d.Via, ViaEviction, ViaEvictionRequest)
	p.oneOf("drain.onNodeNotReady", d.OnNodeNotReady, WaitForKubelet, IgnoreStuck)
	if d.Plan != nil {
		d.Plan.validate(p)
	}
	d.validateEscalation(p)
}

// maxNamespaces bounds each list of namespaces.
const maxNamespaces = 64

func (n Namespaces) validate(p *problems) {
	for _, list := range []struct {
		field string
		names []string
	}{{"drain.namespaces.include", n.Include}, {"drain.namespaces.exclude", n.Exclude}} {
		field, names := list.field, list.names
		if len(names) > maxNamespaces {
			p.add(field, fmt.Sprintf("has %d entries: at most %d are taken", len(names), maxNamespaces))
		}
		for i, name := range names {
			at := fmt.Sprintf("%s[%d]", field, i)
			if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
				p.add(at, fmt.Sprintf("%q is not the name of a namespace: %s", name, wrong[0]))
			}
			if slices.Contains(names[:i], name) {
				p.add(at, fmt.Sprintf("%q is named twice", name))
			}
		}
	}
	if n.Include != nil && len(n.Include) == 0 {
		p.add("drain.namespaces.include", "is empty, so that no pod would leave: leave it out for all namespaces")
	}
	for i, name := range n.Include {
		if slices.Contains(n.Exclude, name) {
			p.add(fmt.Sprintf("drain.namespaces.include[%d]", i), fmt.Sprintf("%q is excluded too (drain.namespaces.exclude)", name))
		}
	}
}

func (d Drain) validateEscalation(p *problems) {
	for i, rung := range d.Escalation {
		field := fmt.Sprintf("drain.escalation[%d]", i)
		p.oneOf(field+".do", rung.Do, Rungs...)
		if err := RungFits(rung.Do, d.Mode); err != nil {
			*p = append(*p, fmt.Errorf("%s.%w", field, err))
		}
		if rung.After == 0 {
			p.add(field+".after", "must be more than 0s: it is the time since the cordon")
		}
		if i > 0 && rung.After <= d.Escalation[i-1].After {
			p.add(field+".after", fmt.Sprintf("%s must be later than the rung before it (%s)", rung.After, d.Escalation[i-1].After))
		}
		if i < len(d.Escalation)-1 && EndsDrain(rung.Do) {
			p.add(field+".do", rung.Do+" ends the drain, so no rung can follow it")
		}
	}
}

func (plan Plan) validate(p *problems) {
	p.oneOf("drain.plan.static", plan.Static, SkipStatic, WaitForStatic)
	if len(plan.Tiers) == 0 && len(plan.Include) == 0 {
		p.add("drain.plan", "has no tiers and includes no pod types: no pod would leave; leave it out to drain all Default pods")
	}
	for i, podType := range plan.Include {
		p.oneOf(fmt.Sprintf("drain.plan.include[%d]", i), string(podType), podTypes()...)
	}
	if _, err := plan.Compile(); err != nil {
		for line := range strings.Lines(err.Error()) {
			*p = append(*p, errors.New("drain.plan."+strings.TrimSpace(line)))
		}
	}
}

func podTypes() []string {
	var names []string
	for _, podType := range drainplan.Types() {
		names = append(names, string(podType))
	}
	return names
}

// NodeName checks the name of a node: a DNS subdomain, as Kubernetes has it.
func NodeName(name string) error {
	if name == "" {
		return errors.New("required: the name of the node to maintain")
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("%q is not a node name: %s", name, wrong[0])
	}
	return nil
}

// RequestorName checks a requestor: 2 to 63 letters, digits, '-', '_' and '.', a letter or digit at both ends
// (maintenance-operator, requestorID).
func RequestorName(name string) error {
	if len(name) < 2 || len(name) > 63 {
		return fmt.Errorf("%q has %d characters: want 2 to 63", name, len(name))
	}
	if !requestorName.MatchString(name) {
		return fmt.Errorf("%q: want letters, digits, '-', '_' and '.', with a letter or digit at both ends", name)
	}
	return nil
}

// maxPriority is that of Kubernetes' own priority classes.
const maxPriority = 1_000_000_000

// Priority checks what ranks requests for a slot.
func Priority(priority int) error {
	if priority < -maxPriority || priority > maxPriority {
		return fmt.Errorf("%d: want at least %d and at most %d", priority, -maxPriority, maxPriority)
	}
	return nil
}

// problems gathers one error per wrong field.
type problems []error

func (p *problems) add(field, message string) {
	*p = append(*p, fmt.Errorf("%s: %s", field, message))
}

func (p *problems) check(field string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%s: %w", field, err))
	}
}

// section puts a section's name in front of every line of its error.
func (p *problems) section(name string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		*p = append(*p, errors.New(name+"."+strings.TrimSpace(line)))
	}
}

func (p *problems) text(field, value string) {
	if len(value) > MaxText {
		p.add(field, fmt.Sprintf("has %d bytes: at most %d are kept", len(value), MaxText))
	}
}

func (p *problems) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		p.add(field, fmt.Sprintf("%q is not one of %s", value, strings.Join(allowed, ", ")))
	}
}

func (p *problems) selector(field, value string) {
	if _, err := labels.Parse(value); err != nil {
		p.add(field, fmt.Sprintf("%q is not a label selector: %v", value, err))
	}
}
