package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/drain"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/spec"
)

// Bounds of what is carried in the status and in every drain's input.
const (
	maxSkipped       = 200
	maxConsents      = 30
	maxConsentedPods = 200
)

// exceptions are what operators say of the pods of a drain under way: which stay, and what may be lost.
type exceptions struct {
	core
	// tryAgain has the drain begin anew, with what it may do by then.
	tryAgain func()
}

// ofPods refuses a message about single pods where no drain looks at them.
func (e *exceptions) ofPods(run string) error {
	if err := firstOf(e.thisRun(run), e.journal.inPhase(api.Draining)); err != nil {
		return err
	}
	if e.spec.Drain.Mode == spec.ModeExternal {
		return fmt.Errorf("the drain mode is %s: Drydock does not look at pods", spec.ModeExternal)
	}
	return nil
}

func (e *exceptions) checkSkipPod(p api.SkipPod) error {
	if err := firstOf(e.ofPods(p.Run), spec.PodName(p.Pod)); err != nil {
		return err
	}
	if len(e.journal.status().SkippedPods) >= maxSkipped {
		return fmt.Errorf("%d pods are skipped already: narrow the drain by podSelector instead", maxSkipped)
	}
	return nil
}

// applySkipPod looks for the pod first: one that is not there stays nowhere.
func (e *exceptions) applySkipPod(p api.SkipPod) string {
	if slices.Contains(e.journal.status().SkippedPods, p.Pod) {
		return p.Pod + " is skipped already"
	}
	skip := func() string { return e.skip(p.Pod) }
	if !changed(e.clock.life, changeFindPod) {
		return skip()
	}
	return e.inquiries.begin(inquiry{
		name: api.MsgSkipPod, apply: skip,
		check: func() error { return firstOf(e.stop.refuse(), e.checkSkipPod(p)) },
		ask:   func(ctx workflow.Context) (string, error) { return e.inquiries.findPods(ctx, p.Pod) },
	})
}

func (e *exceptions) skip(pod string) string {
	e.journal.change(func(s *api.Status) {
		if !slices.Contains(s.SkippedPods, pod) {
			s.SkippedPods = append(s.SkippedPods, pod)
		}
	})
	e.goOn()
	return pod + " stays on the node and is not waited for"
}

// goOn has the drain begin anew. What was said is not waited for any more.
func (e *exceptions) goOn() {
	e.journal.change(func(s *api.Status) {
		if s.Drain != nil {
			now := s.Unsettled(*s.Drain)
			s.Drain = &now
		}
	})
	e.journal.waiting("")
	e.tryAgain()
}

func (e *exceptions) checkConsent(p api.Consent) error {
	if err := firstOf(e.ofPods(p.Run), wholeConsent(p)); err != nil {
		return err
	}
	if e.spec.Drain.Mode != spec.ModeEvict {
		return fmt.Errorf("the drain mode is %s: no pod waits for anybody's consent", e.spec.Drain.Mode)
	}
	given := e.journal.status().Consents
	pods := len(p.Pods)
	for _, c := range given {
		pods += len(c.Pods)
	}
	if len(given) >= maxConsents || pods > maxConsentedPods {
		return fmt.Errorf("no more than %d consents, to %d pods by name, are taken: consent to all pods", maxConsents, maxConsentedPods)
	}
	if now := e.consented(); (now.Force || !p.Force) && (now.DeleteEmptyDir || !p.DeleteEmptyDir) {
		return errors.New("that is consented to already, for all pods")
	}
	return nil
}

// wholeConsent refuses a consent that does not say to what, by whom or why: somebody answers for what is lost.
func wholeConsent(p api.Consent) error {
	if !p.Force && !p.DeleteEmptyDir {
		return errors.New("consent to what? Set force, deleteEmptyDir or both")
	}
	if strings.TrimSpace(p.By) == "" || strings.TrimSpace(p.Comment) == "" {
		return errors.New("by and comment: required: who consents, and why")
	}
	for i, pod := range p.Pods {
		if err := spec.PodName(pod); err != nil {
			return fmt.Errorf("pods[%d]: %w", i, err)
		}
	}
	return nil
}

// applyConsent looks for the pods that are named first: nobody means one that is not there.
func (e *exceptions) applyConsent(p api.Consent) string {
	asked := e.spec
	asked.Drain = e.consented()
	asked.Drain.Force, asked.Drain.DeleteEmptyDir = asked.Drain.Force || p.Force, asked.Drain.DeleteEmptyDir || p.DeleteEmptyDir
	check := func() error { return firstOf(e.stop.refuse(), e.checkConsent(p)) }
	apply := func() string { return e.consent(p) }
	if len(p.Pods) == 0 || !changed(e.clock.life, changeFindConsented) {
		return e.inquiries.amend(api.MsgConsent, asked, check, apply)
	}
	return e.inquiries.begin(inquiry{
		name: api.MsgConsent, check: check, apply: apply,
		ask: func(ctx workflow.Context) (string, error) {
			if missing, err := e.inquiries.findPods(ctx, p.Pods...); err != nil || missing != "" {
				return missing, err
			}
			return e.inquiries.judge(ctx, api.MsgConsent, asked)
		},
	})
}

func (e *exceptions) consent(p api.Consent) string {
	given := api.ConsentGiven{
		At: e.clock.now(), By: p.By, Comment: p.Comment, Force: p.Force, DeleteEmptyDir: p.DeleteEmptyDir, Pods: p.Pods,
	}
	bounds.Fit(&given)
	e.journal.change(func(s *api.Status) { s.Consents = append(s.Consents, given) })
	e.goOn()
	return "consented to " + given.What()
}

// consented is the drain with what somebody has consented to for all pods.
func (e *exceptions) consented() spec.Drain {
	in := e.spec.Drain
	for _, c := range e.journal.status().Consents {
		if len(c.Pods) == 0 {
			in.Force, in.DeleteEmptyDir = in.Force || c.Force, in.DeleteEmptyDir || c.DeleteEmptyDir
		}
	}
	return in
}

// consents are those to single pods.
func (e *exceptions) consents() []drain.Consent {
	var all []drain.Consent
	for _, c := range e.journal.status().Consents {
		for _, pod := range c.Pods {
			all = append(all, drain.Consent{Pod: pod, Force: c.Force, DeleteEmptyDir: c.DeleteEmptyDir})
		}
	}
	return all
}
