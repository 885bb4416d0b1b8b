package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

const (
	// MaxInput bounds a check's input, in bytes: it is carried from run to run.
	MaxInput = 256 << 10
	// MinTimeout is the least timeout of a step (medik8s, EscalatingRemediation).
	MinTimeout = time.Minute
	// maxConditions, maxSteps, maxPauses and maxLabels bound the lists of a spec.
	maxConditions = 50
	maxSteps      = 20
	maxPauses     = 50
	maxLabels     = 8
	// maxWord bounds, in bytes, what names something of Kubernetes.
	maxWord = 316
	// defaultDuration is that of the default conditions, and defaultMinHealthy the default threshold in percent (medik8s,
	// NodeHealthCheck).
	defaultDuration   = 300 * time.Second
	defaultMinHealthy = 51
)

// deletesMachines is a remediator that deletes nodes for good, which a count of unhealthy ones cannot follow.
const deletesMachines = "MachineDeletionRemediationTemplate"

// Decode reads a check's JSON input strictly, fills what is absent, and validates the whole. The error has a line for every
// field that is wrong.
func Decode(input []byte) (Spec, error) {
	var s Spec
	if len(input) > MaxInput {
		return s, fmt.Errorf("the input has %d bytes: at most %d are taken", len(input), MaxInput)
	}
	if len(strings.TrimSpace(string(input))) == 0 {
		return s, errors.New("no input: want a JSON object, at least with selector and remediationTemplate")
	}
	if err := spec.DecodeStrict(input, &s); err != nil {
		return s, err
	}
	if err := errors.Join(s.Validate(), missingDurations(input)); err != nil {
		return s, err
	}
	return s.Resolve(), nil
}

// missingDurations refuses conditions without a duration: 0s is one, which makes a node ill at once.
func missingDurations(input []byte) error {
	var read struct {
		UnhealthyConditions []struct {
			Duration *json.RawMessage `json:"duration"`
		} `json:"unhealthyConditions"`
	}
	if err := json.Unmarshal(input, &read); err != nil {
		return err
	}
	var wrong []error
	for i, c := range read.UnhealthyConditions {
		if c.Duration == nil {
			wrong = append(wrong, fmt.Errorf("unhealthyConditions[%d].duration: required", i))
		}
	}
	return errors.Join(wrong...)
}

// Resolve is the check with its defaults filled in.
func (s Spec) Resolve() Spec {
	if len(s.UnhealthyConditions) == 0 {
		s.UnhealthyConditions = []UnhealthyCondition{
			{Type: "Ready", Status: "False", Duration: period.Duration(defaultDuration)},
			{Type: "Ready", Status: "Unknown", Duration: period.Duration(defaultDuration)},
		}
	}
	if s.MinHealthy.IsZero() && s.MaxUnhealthy.IsZero() {
		s.MinHealthy = schedule.Percent(defaultMinHealthy)
	}
	return s
}

// Steps are the remediations in the order in which they are tried.
func (s Spec) Steps() []Remediation {
	if len(s.EscalatingRemediations) == 0 {
		return []Remediation{{Template: s.RemediationTemplate, Maintenance: s.Maintenance}}
	}
	escalating := slices.Clone(s.EscalatingRemediations)
	slices.SortStableFunc(escalating, func(a, b Escalation) int { return a.Order - b.Order })
	steps := make([]Remediation, len(escalating))
	for i, e := range escalating {
		steps[i] = Remediation{Template: e.RemediationTemplate, Maintenance: e.Maintenance, Timeout: e.Timeout}
	}
	return steps
}

// Locked refuses the changes from s to another spec that would leave running remediations behind.
func (s Spec) Locked(to Spec) error {
	var wrong problems
	for _, field := range []struct {
		name     string
		from, to any
	}{
		{"selector", s.Selector, to.Selector},
		{"remediationTemplate", s.RemediationTemplate, to.RemediationTemplate},
		{"maintenance", s.Maintenance, to.Maintenance},
		{"escalatingRemediations", s.EscalatingRemediations, to.EscalatingRemediations},
	} {
		if !sameJSON(field.from, field.to) {
			wrong.add(field.name, "cannot change while a node is being remediated: wait until that is over")
		}
	}
	return errors.Join(wrong...)
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	var u, v any
	return errX == nil && errY == nil && json.Unmarshal(x, &u) == nil && json.Unmarshal(y, &v) == nil && reflect.DeepEqual(u, v)
}

// problems gathers one error per wrong field.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf(field+": "+format, args...))
}

func (p *problems) check(field string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%s: %w", field, err))
	}
}

// word checks a text that names something of Kubernetes.
func (p *problems) word(field, text string) {
	switch {
	case text == "":
		p.add(field, "required")
	case len(text) > maxWord:
		p.add(field, "has %d bytes: at most %d are taken", len(text), maxWord)
	}
}

// under puts a field's name in front of every line of an error about what is in it.
func (p *problems) under(field string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		*p = append(*p, errors.New(field+"."+strings.TrimSuffix(line, "\n")))
	}
}

// Validate checks a check; the error has a line for every field that is wrong.
func (s Spec) Validate() error {
	var wrong problems
	s.validateSelector(&wrong)
	s.validateConditions(&wrong)
	if !s.MinHealthy.IsZero() && !s.MaxUnhealthy.IsZero() {
		wrong.add("minHealthy, maxUnhealthy", "want one of them, not both")
	}
	wrong.limited("minHealthy", s.MinHealthy)
	wrong.limited("maxUnhealthy", s.MaxUnhealthy)
	if s.Groups != nil {
		s.Groups.validate(&wrong)
	}
	s.validateRemediations(&wrong)
	s.validateRest(&wrong)
	if s.Object != nil {
		if err := s.Object.Validate(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

func (s Spec) validateSelector(wrong *problems) {
	if len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
		wrong.add("selector", "required: want matchLabels or matchExpressions. An empty one would select all nodes")
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(&s.Selector)
	wrong.check("selector", err)
	if err == nil && len(selector.String()) > spec.MaxText {
		wrong.add("selector", "has %d bytes: at most %d are taken", len(selector.String()), spec.MaxText)
	}
}

func (s Spec) validateConditions(wrong *problems) {
	if len(s.UnhealthyConditions) > maxConditions {
		wrong.add("unhealthyConditions", "%d entries: at most %d are taken", len(s.UnhealthyConditions), maxConditions)
		return
	}
	seen := map[source]bool{}
	for i, c := range s.UnhealthyConditions {
		at := fmt.Sprintf("unhealthyConditions[%d]", i)
		c.validate(wrong, at)
		if seen[c.source()] {
			what, how := c.Words()
			wrong.add(at, "%s %s is there twice", what, how)
		}
		seen[c.source()] = true
	}
}

// limited refuses the amount that says that there is no limit.
func (p *problems) limited(field string, a schedule.Amount) {
	if a == schedule.Unlimited() {
		p.add(field, "%q is refused: want a whole number such as 3, or a percentage from 0%% to 100%%", a.String())
	}
}

func (g GroupThreshold) validate(wrong *problems) {
	if len(g.By) == 0 || len(g.By) > maxLabels {
		wrong.add("groups.by", "%d labels: want 1 to %d, such as topology.kubernetes.io/zone", len(g.By), maxLabels)
	}
	for i, key := range g.By {
		wrong.check(fmt.Sprintf("groups.by[%d]", i), labelKey(key))
	}
	if g.MinHealthy.IsZero() == g.MaxUnhealthy.IsZero() {
		wrong.add("groups", "want one of minHealthy and maxUnhealthy")
	}
	wrong.limited("groups.minHealthy", g.MinHealthy)
	wrong.limited("groups.maxUnhealthy", g.MaxUnhealthy)
}

func (s Spec) validateRest(wrong *problems) {
	if len(s.PauseRequests) > maxPauses {
		wrong.add("pauseRequests", "%d entries: at most %d are taken", len(s.PauseRequests), maxPauses)
	}
	for i, text := range s.PauseRequests {
		at := fmt.Sprintf("pauseRequests[%d]", i)
		switch {
		case strings.TrimSpace(text) == "":
			wrong.add(at, "want some words: who pauses, and why")
		case len(text) > spec.MaxText:
			wrong.add(at, "has %d bytes: at most %d are taken", len(text), spec.MaxText)
		}
	}
	if s.Flapping != nil {
		if s.Flapping.Within == 0 {
			wrong.add("flapping.within", "required: want more than 0s")
		}
		if len(s.EscalatingRemediations) == 0 {
			wrong.add("flapping", "needs escalatingRemediations: there is no next step without them")
		}
	}
	if s.Notify != nil {
		for i, name := range *s.Notify {
			wrong.check(fmt.Sprintf("notify[%d]", i), spec.ChannelName(name))
		}
	}
	if s.ControlPlane != nil && s.ControlPlane.Allow != AllowHealthy && s.ControlPlane.Allow != AllowAlways {
		wrong.add("controlPlane.allow", "%.40q is not one of %s, %s", s.ControlPlane.Allow, AllowHealthy, AllowAlways)
	}
	if s.Etcd != nil {
		wrong.word("etcd.namespace", s.Etcd.Namespace)
		if s.Etcd.Budget != "" {
			wrong.word("etcd.budget", s.Etcd.Budget)
		}
	}
}
