// Package settings gives workflows the worker's configuration.
package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// Activities tell workflows what the worker is configured to: workflow code must not read configuration itself.
type Activities struct {
	Temporal  client.Client
	Namespace string
	// Starters know who started workflows.
	Starters *execution.Starters
	// Defaults are the configured defaults of maintenances, as JSON.
	Defaults json.RawMessage
	// Attributes are the names of the search attributes to use, all of type Keyword.
	Attributes []string
	// Channels are all that the worker can tell, DefaultChannels those of maintenances that name none.
	Channels        []notices.Channel
	DefaultChannels []string
	// Runner knows the hooks, checks and works; nil knows none.
	Runner *checks.Runner
	// Client and Groups tell which groups a node is in, for channels that want to know.
	Client kube.Interface
	Groups schedule.Grouper
	// Judge has the rules that maintenances may not break; nil has none.
	Judge *policy.Judge
	// Windows are the names of the windows that there are.
	Windows []string
	// Audited: audit records are kept. Conditions: nodes show lifecycle conditions.
	Audited, Conditions bool

	registered attributes
}

// attributes is what is known of the search attributes of the namespace.
type attributes struct {
	mu sync.Mutex
	// missing are those that it lacks, of those that there are to be; answered: the namespace was asked.
	missing  []string
	answered bool
	asked    time.Time
}

// Prepared is what a maintenance needs to know before it begins.
type Prepared struct {
	Defaults json.RawMessage `json:"defaults,omitempty"`
	// Starter is who started it; nil if that cannot be found out.
	Starter *api.Sender `json:"starter,omitempty"`
	// SearchAttributes: the namespace has them. To set an unregistered one would fail the workflow task for ever.
	SearchAttributes bool `json:"searchAttributes,omitempty"`
	// Kinds: it has the attribute for the kind of a workflow too, which namespaces that an earlier release set up lack.
	Kinds bool `json:"kinds,omitempty"`
	// Channels get events of the maintenance; Groups are those its node is in, where a channel wants to know.
	Channels []notices.Channel `json:"channels,omitempty"`
	Groups   []string          `json:"groups,omitempty"`
	// Hooks are those that its input names.
	Hooks []validation.Hook `json:"hooks,omitempty"`
	// Work is what its input names to be done; nil if it names none.
	Work *validation.Work `json:"work,omitempty"`
	// Audited: a record of it is to be kept. Conditions: its node shows lifecycle conditions.
	Audited    bool `json:"audited,omitempty"`
	Conditions bool `json:"conditions,omitempty"`
	// Policy: there are rules, and a later judgement by them needs the specification. Refused says which rules refuse it
	// now.
	Policy  bool   `json:"policy,omitempty"`
	Refused string `json:"refused,omitempty"`
	// Unknown says which channel, hook, check, work or window of its input the worker's configuration lacks.
	Unknown string `json:"unknown,omitempty"`
}

// askAgain is how often a worker looks whether somebody registered the search attributes meanwhile.
const askAgain = time.Minute

// Prepare returns the worker's defaults for a maintenance, and what its input names of the worker's configuration.
func (s *Activities) Prepare(ctx context.Context, input json.RawMessage) (Prepared, error) {
	prepared := Prepared{Defaults: s.Defaults, Starter: s.starter(ctx), Audited: s.Audited, Conditions: s.Conditions}
	prepared.SearchAttributes, prepared.Kinds = s.mayAttribute(ctx)
	// What does not decode the workflow refuses itself, and says what is wrong.
	if m, err := spec.Decode(input, s.Defaults); err == nil {
		s.resolve(ctx, m, &prepared)
		prepared.Policy, prepared.Refused = s.Judge.HasRules(), s.Judge.Begin(ctx, m)
	}
	return prepared, nil
}

// Run is the run of the calling workflow, as the server names it.
func (s *Activities) Run(ctx context.Context) (string, error) {
	return activity.GetInfo(ctx).WorkflowExecution.RunID, nil
}

// starterWithin and starterTries bound the time in which a maintenance finds out who started it.
const (
	starterWithin = 2 * time.Second
	starterTries  = 3
)

// starter is who started the calling workflow. Nothing waits for long to know it.
func (s *Activities) starter(ctx context.Context) *api.Sender {
	calling := activity.GetInfo(ctx).WorkflowExecution
	var err error
	for range starterTries {
		var sender api.Sender
		asking, cancel := context.WithTimeout(ctx, starterWithin)
		sender, err = s.Starters.Of(asking, execution.Run{WorkflowID: calling.ID, RunID: calling.RunID})
		cancel()
		if err == nil {
			return &sender
		}
	}
	activity.GetLogger(ctx).Warn("who started the maintenance is not known", "error", err)
	return nil
}

// resolve finds what a maintenance names of the worker's configuration.
func (s *Activities) resolve(ctx context.Context, m spec.Maintenance, prepared *Prepared) {
	channels, err := s.channelsOf(m)
	problems := []error{err}
	prepared.Channels = channels
	for _, name := range m.Hooks.Names() {
		known, err := s.hook(name)
		problems = append(problems, ofInput(m.Hooks.Field(name), err))
		prepared.Hooks = append(prepared.Hooks, known)
	}
	if m.Validation != nil && len(m.Validation.Checks) > 0 {
		problems = append(problems, s.known(m.Validation.Checks))
	}
	if m.Work != "" {
		work, err := s.work(m.Work)
		problems = append(problems, ofInput("work", err))
		if held := m.ReadyTimeout; err == nil && held > 0 && held < work.Deadline {
			problems = append(problems, fmt.Errorf("readyTimeout: %s is shorter than the deadline of work %s (%s), which would be ended half way: give a longer one, or 0s",
				held, m.Work, work.Deadline))
		}
		prepared.Work = &work
	}
	problems = append(problems, s.windows(m.Windows))
	if err := errors.Join(problems...); err != nil {
		prepared.Unknown = err.Error()
		return
	}
	if slices.ContainsFunc(channels, func(p notices.Channel) bool { return len(p.Filter.Groups) > 0 }) {
		prepared.Groups = s.groupsOf(ctx, m.Node)
	}
}

// channelsOf are the channels that a maintenance names, or else the default ones.
func (s *Activities) channelsOf(m spec.Maintenance) ([]notices.Channel, error) {
	names, field := s.DefaultChannels, "default channels"
	if m.Notify != nil {
		names, field = *m.Notify, "notify"
	}
	var chosen []notices.Channel
	var problems []error
	for i, name := range names {
		at := slices.IndexFunc(s.Channels, func(p notices.Channel) bool { return p.Name == name })
		switch {
		case at < 0:
			problems = append(problems, fmt.Errorf("%s[%d]: the worker's configuration has no channel %q (channels)", field, i, name))
		case !slices.Contains(names[:i], name):
			chosen = append(chosen, s.Channels[at])
		}
	}
	return chosen, errors.Join(problems...)
}

func (s *Activities) hook(name string) (validation.Hook, error) {
	if s.Runner == nil {
		return validation.Hook{}, fmt.Errorf("the worker's configuration has no hook %q (hooks)", name)
	}
	return s.Runner.Plan(name)
}

func (s *Activities) work(name string) (validation.Work, error) {
	if s.Runner == nil {
		return validation.Work{}, fmt.Errorf("the worker's configuration has no work %q (work)", name)
	}
	return s.Runner.Work(name)
}

// ofInput is why the worker does not know what a field of an input names, which is no fault of the worker's configuration.
func ofInput(field string, err error) error {
	var unknown *checks.Misconfigured
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		err = unknown.Err
	}
	return fmt.Errorf("%s: %w", field, err)
}

// windows says which windows there are not.
func (s *Activities) windows(names []string) error {
	var problems []error
	for i, name := range names {
		if !slices.Contains(s.Windows, name) {
			problems = append(problems, fmt.Errorf("windows[%d]: the worker's configuration has no window %q (windows)", i, name))
		}
	}
	return errors.Join(problems...)
}

func (s *Activities) known(names []string) error {
	var problems []error
	for i, name := range names {
		err := fmt.Errorf("the worker's configuration has no check %q (checks)", name)
		if s.Runner != nil {
			err = s.Runner.Known([]string{name}, validation.Hooks{})
		}
		problems = append(problems, ofInput(fmt.Sprintf("validation.checks[%d]", i), err))
	}
	return errors.Join(problems...)
}

// groupsWithin keeps a maintenance from waiting for an API server that hangs.
const groupsWithin = 3 * time.Second

// groupsOf are the groups of a node. A node that cannot be looked at now is in none.
func (s *Activities) groupsOf(ctx context.Context, node string) []string {
	ctx, cancel := context.WithTimeout(ctx, groupsWithin)
	defer cancel()
	n, err := s.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		activity.GetLogger(ctx).Warn("groups of a node not known", "node", node, "error", err)
		return nil
	}
	return s.Groups.Keys(n.Labels)
}

// mayAttribute reports whether the namespace has the search attributes, and among them that for kinds.
func (s *Activities) mayAttribute(ctx context.Context) (all, kinds bool) {
	known := &s.registered
	known.mu.Lock()
	defer known.mu.Unlock()
	if (!known.answered || len(known.missing) > 0) && time.Since(known.asked) > askAgain {
		missing, err := s.look(ctx)
		if err != nil {
			activity.GetLogger(ctx).Warn("search attributes not known", "error", err)
		}
		known.missing, known.answered, known.asked = missing, err == nil, time.Now()
	}
	kind := api.AttributeKind.GetName()
	kinds = known.answered && slices.Contains(s.Attributes, kind) && !slices.Contains(known.missing, kind)
	return known.answered && !slices.ContainsFunc(known.missing, func(name string) bool { return name != kind }), kinds
}

// Register adds the search attributes that the namespace lacks. An error means that maintenances run without them.
func (s *Activities) Register(ctx context.Context) error {
	s.registered.mu.Lock()
	defer s.registered.mu.Unlock()
	missing, err := s.look(ctx)
	if err == nil && len(missing) > 0 {
		err = namespace.AddAttributes(ctx, s.Temporal, s.Namespace, missing)
	}
	if err != nil {
		return err
	}
	// A server may take a minute to accept what was just added, and a maintenance that uses it earlier would stall.
	s.registered.missing, s.registered.answered, s.registered.asked = missing, true, time.Now()
	return nil
}

// look finds the search attributes that the namespace lacks.
func (s *Activities) look(ctx context.Context) ([]string, error) {
	has, err := namespace.Attributes(ctx, s.Temporal, s.Namespace, s.Attributes)
	if err != nil {
		return nil, err
	}
	return namespace.Missing(has, s.Attributes), nil
}
