package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// Bounds of what is carried in the status and in every drain's input.
const (
	maxSkipped       = 200
	maxConsents      = 30
	maxConsentedPods = 200
)

func (d *drainer) checkSkipPod(p api.SkipPod) error {
	if d.spec.Drain.Mode == spec.ModeExternal {
		return fmt.Errorf("the drain mode is %s: Drydock does not look at pods, and waits for %q", spec.ModeExternal, api.MsgDrained)
	}
	if err := spec.PodName(p.Pod); err != nil {
		return err
	}
	if len(d.journal.status().SkippedPods) >= maxSkipped {
		return fmt.Errorf("%d pods are skipped already: narrow the drain by podSelector instead", maxSkipped)
	}
	return nil
}

// applySkipPod finds the pod first: one that is not on the node cannot stay there.
func (d *drainer) applySkipPod(p api.SkipPod, check func() error) string {
	if slices.Contains(d.journal.status().SkippedPods, p.Pod) {
		return p.Pod + " is skipped already"
	}
	skip := func() string { return d.skip(p.Pod) }
	if !changed(d.control.life, changeJudge+api.MsgSkipPod) {
		return skip()
	}
	ask := func(ctx workflow.Context) (string, error) { return d.admission.findPods(ctx, p.Pod) }
	return d.admission.inquire(api.MsgSkipPod, ask, check, skip)
}

func (d *drainer) skip(pod string) string {
	d.journal.change(func(s *api.Status) {
		if !slices.Contains(s.SkippedPods, pod) {
			s.SkippedPods = append(s.SkippedPods, pod)
		}
	})
	d.drainAnew()
	return pod + " stays on the node and is not waited for"
}

// drainAnew begins the drain again, without the blockers that are settled now.
func (d *drainer) drainAnew() {
	d.journal.change(func(s *api.Status) {
		if s.Drain != nil {
			s.Drain = new(s.Unsettled(*s.Drain))
		}
	})
	d.journal.waiting("")
	d.retryNow = true
}

func (d *drainer) checkConsent(p api.Consent) error {
	if err := wholeConsent(p); err != nil {
		return err
	}
	if d.spec.Drain.Mode != spec.ModeEvict {
		return fmt.Errorf("the drain mode is %s: no pod waits for anybody's consent", d.spec.Drain.Mode)
	}
	if len(d.journal.status().Consents) >= maxConsents || len(d.consents())+len(p.Pods) > maxConsentedPods {
		return fmt.Errorf("no more than %d consents, to %d pods by name, are taken: consent to all pods", maxConsents, maxConsentedPods)
	}
	if d.consentedAlready(p) {
		return errors.New("that is consented to already, for all pods")
	}
	return nil
}

// wholeConsent refuses a consent that does not say to what, by whom or why: somebody is responsible for the loss.
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

// applyConsent finds the named pods first: nobody means one that is not on the node.
func (d *drainer) applyConsent(p api.Consent, check func() error) string {
	asked := d.consented()
	asked.Force, asked.DeleteEmptyDir = asked.Force || p.Force, asked.DeleteEmptyDir || p.DeleteEmptyDir
	with := func(s *spec.Maintenance) { s.Drain = asked }
	apply := func() string { return d.consent(p) }
	if len(p.Pods) == 0 {
		return d.admission.amend(api.MsgConsent, with, check, apply)
	}
	ask := func(ctx workflow.Context) (string, error) {
		if missing, err := d.admission.findPods(ctx, p.Pods...); err != nil || missing != "" {
			return missing, err
		}
		return d.admission.judge(ctx, api.MsgConsent, with)
	}
	return d.admission.inquire(api.MsgConsent, ask, check, apply)
}

func (d *drainer) consent(p api.Consent) string {
	given := api.ConsentGiven{
		At: d.control.now(), By: p.By, Comment: p.Comment, Force: p.Force, DeleteEmptyDir: p.DeleteEmptyDir, Pods: p.Pods,
	}
	bounds.Fit(&given)
	d.journal.change(func(s *api.Status) { s.Consents = append(s.Consents, given) })
	d.drainAnew()
	return "consented to " + given.What() + ": the drain may lose " + given.Lost()
}

// consented is the drain's specification with all consents that name no pods.
func (d *drainer) consented() spec.Drain {
	in := d.spec.Drain
	for _, c := range d.journal.status().Consents {
		if len(c.Pods) == 0 {
			in.Force, in.DeleteEmptyDir = in.Force || c.Force, in.DeleteEmptyDir || c.DeleteEmptyDir
		}
	}
	return in
}

func (d *drainer) consents() []drain.Consent {
	var all []drain.Consent
	for _, c := range d.journal.status().Consents {
		for _, pod := range c.Pods {
			all = append(all, drain.Consent{Pod: pod, Force: c.Force, DeleteEmptyDir: c.DeleteEmptyDir})
		}
	}
	return all
}
