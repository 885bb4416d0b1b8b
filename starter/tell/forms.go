package tell

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/views"
)

// simple is the form of the messages that say nothing but their name. Others embed it for what they lack.
type simple struct{}

func (simple) register(*pflag.FlagSet) {}

func (simple) check(*order) error { return nil }

func (simple) payload(_ context.Context, o *order) (any, string, error) {
	return api.Simple{}, "", nil
}

type done struct{ simple }

func (done) payload(_ context.Context, o *order) (any, string, error) {
	return api.Done{Requestor: o.found.For}, "", nil
}

type failed struct{ simple }

func (failed) payload(_ context.Context, o *order) (any, string, error) {
	return api.FailedMessage{Requestor: o.found.For}, "", nil
}

type cancel struct {
	simple
	release bool
}

func (p *cancel) register(f *pflag.FlagSet) {
	f.BoolVar(&p.release, "release", false, "give the node back even if it was Ready already")
}

// payload leaves a node that is not Ready yet alone if it becomes Ready meanwhile, and asks before a Ready one becomes RequestorFailed.
func (p *cancel) payload(ctx context.Context, o *order) (any, string, error) {
	if p.release {
		o.next = ""
		return api.Cancel{Release: true}, "", nil
	}
	o.ends = "" // the node stays out of service, or was not touched
	if o.wait || o.yes {
		return api.Cancel{BeforeReady: o.wait}, "", nil // RequestorFailed is no end to wait for
	}
	s, err := o.status(ctx)
	if err != nil {
		return nil, "", err
	}
	m, turns := cancelOf(s)
	if err := o.app.CanConfirm(false); turns != "" && err != nil {
		return nil, "", fmt.Errorf("%s: %s: %w", o.node(), turns, err)
	}
	if turns != "" {
		turns += ". Cancel?"
	}
	return m, turns, nil
}

// cancelOf is what cancels a maintenance, with what its node turns into where that is not the way back.
func cancelOf(s *api.Status) (m api.Cancel, turns string) {
	switch {
	case s != nil && s.Phase == api.Ready:
		return m, "it is Ready, and becomes RequestorFailed: out of service, with its slot, until somebody decides; --release gives it back as it is"
	case s != nil && (s.Phase == api.RequestorFailed || s.Phase == api.Validating):
		return m, "" // the maintenance says why that is not enough
	}
	return api.Cancel{BeforeReady: true}, ""
}

type extend struct {
	duration time.Duration
	flags    *pflag.FlagSet
}

func (p *extend) register(f *pflag.FlagSet) {
	p.flags = f
	invocation.DurationVar(f, &p.duration, "for", 0, "how long from now, such as 2h (default the maintenance's ready timeout)")
}

func (p *extend) check(*order) error {
	if p.duration < 0 || p.flags.Changed("for") && p.duration == 0 {
		return exit.UsageError("--for %s: want a time to come", p.duration)
	}
	return nil
}

func (p *extend) payload(_ context.Context, o *order) (any, string, error) {
	return api.Extend{For: spec.Duration(p.duration)}, "", nil
}

type started struct{ simple }

func (started) payload(_ context.Context, o *order) (any, string, error) {
	return api.Started{}, "", nil
}

// membership is the form of join and leave, which are about another requestor than the one whose maintenance it is.
type membership struct {
	who, owner string
}

func (p *membership) register(f *pflag.FlagSet) {
	f.StringVar(&p.owner, "of", "", "whose maintenance of the node, where several wait for it")
}

func (p *membership) check(o *order) error {
	p.who = cmp.Or(o.requestor, o.app.Env.Requestor())
	if err := spec.RequestorName(p.who); err != nil {
		return exit.UsageError("requestor: %w", err)
	}
	o.requestor, o.of = p.owner, "--of"
	return nil
}

func (p *membership) payload(_ context.Context, o *order) (any, string, error) {
	return api.Membership{Requestor: p.who}, "", nil
}

type escalate struct {
	do string
}

func (p *escalate) register(f *pflag.FlagSet) {
	f.StringVar(&p.do, "do", "", "the rung to take: "+strings.Join(spec.Rungs, ", ")+" (default the next one)")
}

func (p *escalate) check(o *order) error {
	switch {
	case p.do != "" && !slices.Contains(spec.Rungs, p.do):
		return exit.UsageError("--do %q: want one of %s", p.do, strings.Join(spec.Rungs, ", "))
	case dangerOf(p.do) != "":
		return o.app.CanConfirm(o.yes)
	}
	return nil
}

// payload looks which rung is the next: another one may be when the message arrives, and is then not taken.
func (p *escalate) payload(ctx context.Context, o *order) (any, string, error) {
	m := api.Escalate{Do: p.do}
	if p.do == "" {
		s, err := o.status(ctx)
		if err != nil {
			return nil, "", err
		}
		if s != nil && s.Phase == api.Draining {
			next, _ := views.RungToTake(s)
			m.Expect = next.Do
		}
	}
	return m, dangerOf(cmp.Or(p.do, m.Expect)), nil
}

// dangerOf asks for a rung that costs pods, or the drain; it is empty for one that costs nothing.
func dangerOf(rung string) string {
	switch rung {
	case spec.BypassBudget:
		return "bypassBudget deletes the pods that disruption budgets protect. Do it?"
	case spec.Kill:
		return "kill deletes the pods without their grace period, whatever their budgets say. Do it?"
	case spec.GiveBack:
		return "giveBack puts the node back into service. The maintenance then waits for another slot and drains the node again. Do it?"
	case spec.Fail:
		return "fail gives up and ends the maintenance as Failed. Do it?"
	}
	return ""
}

type consent struct {
	force, deleteData bool
	pods              []string
}

func (p *consent) register(f *pflag.FlagSet) {
	f.BoolVar(&p.force, "force", false, "consent to losing pods that no controller re-creates")
	f.BoolVar(&p.deleteData, "delete-emptydir-data", false, "consent to losing the data in emptyDir volumes")
	f.StringSliceVar(&p.pods, "pod", nil, "NAMESPACE/NAME of a pod that it holds for (repeatable, default all pods)")
}

func (p *consent) check(o *order) error {
	if !p.force && !p.deleteData {
		return exit.UsageError("missing what to consent to: --force, --delete-emptydir-data or both")
	}
	for _, pod := range p.pods {
		if spec.PodName(pod) != nil {
			return exit.UsageError("--pod %q: want NAMESPACE/NAME", pod)
		}
	}
	return o.app.CanConfirm(o.yes)
}

func (p *consent) payload(_ context.Context, o *order) (any, string, error) {
	lost := api.ConsentGiven{Force: p.force, DeleteEmptyDir: p.deleteData}.Lost()
	if len(p.pods) > 0 {
		lost += " (" + strings.Join(p.pods, ", ") + ")"
	}
	m := api.Consent{Force: p.force, DeleteEmptyDir: p.deleteData, Pods: p.pods}
	return m, lost + " will be lost for good. Consent?", nil
}

type reschedule struct {
	text string
	at   time.Time
}

func (p *reschedule) register(f *pflag.FlagSet) {
	f.StringVar(&p.text, "not-before", "", "a time such as 2026-03-01T22:00:00Z, or how long from now, such as 48h")
}

func (p *reschedule) check(o *order) (err error) {
	if p.text == "" {
		return exit.UsageError("until when? Name a time with --not-before")
	}
	if p.at, err = input.NotBefore(p.text, o.app.Clock()); err != nil {
		return exit.UsageError("--not-before: %w", err)
	}
	if p.at.Before(o.app.Clock().Add(-spec.LateNotice)) {
		return exit.UsageError("--not-before: %s is over: name a time to come, or 0s to begin at once", p.text)
	}
	return nil
}

func (p *reschedule) payload(_ context.Context, o *order) (any, string, error) {
	return api.Reschedule{NotBefore: p.at}, "", nil
}

type hook struct {
	simple
	failed bool
}

func (*hook) check(o *order) error { return validation.Name(o.args[1]) }

func (p *hook) payload(_ context.Context, o *order) (any, string, error) {
	return api.HookMessage{Hook: o.args[1], Failed: p.failed}, "", nil
}

type reportTo struct{ replace bool }

func (p *reportTo) register(f *pflag.FlagSet) {
	f.BoolVar(&p.replace, "replace", false, "report to this workflow instead of the one that it reports to")
}

func (*reportTo) check(o *order) error {
	_, err := input.ReportTo(o.args[1])
	if err != nil {
		return exit.UsageError("%w", err)
	}
	return nil
}

func (p *reportTo) payload(_ context.Context, o *order) (any, string, error) {
	to, err := input.ReportTo(o.args[1])
	return api.ReportTo{Workflow: to.Workflow, Signal: to.Signal, Replace: p.replace}, "", err
}

type hookDone struct{ hook }

func (p *hookDone) register(f *pflag.FlagSet) {
	f.BoolVar(&p.failed, "failed", false, "the hook has failed")
}
