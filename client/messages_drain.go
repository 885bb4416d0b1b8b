package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// Drained says that a node with drain mode external is empty.
func Drained() Message {
	return Message{
		name:    api.MsgDrained,
		payload: simple,
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Spec.Drain.Mode != spec.ModeExternal:
				return "", notNowBecause(api.MsgDrained, s,
					fmt.Sprintf("%s is drained by Drydock (drain mode %s), which sees by itself when it is empty", s.Spec.Node, s.Spec.Drain.Mode))
			case s.Phase == api.Ready:
				return "is Ready already", nil
			case s.Phase != api.Draining:
				return "", notNow(api.MsgDrained, s, "not Draining yet")
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return now.Phase != api.Draining },
	}
}

// Escalate takes the next rung of the escalation of a Draining node now, or the rung named, one of spec.Rungs.
func Escalate(rung string) Message {
	return Message{
		name: api.MsgEscalate,
		slow: true,
		payload: func(to addressee) any {
			p := api.Escalate{Message: to.Message, Do: rung, Run: to.run}
			if rung == "" && to.status != nil {
				// What comes next may have changed when the message arrives.
				next, _ := RungToTake(to.status)
				p.Expect = next.Do
			}
			return p
		},
		check: func(s *api.Status) (string, error) { return checkEscalation(s, rung) },
		effect: func(before, now *api.Status) bool {
			if now.Phase != api.Draining || now.Attempt != before.Attempt {
				return true
			}
			next, _ := RungToTake(before)
			added := now.Escalation[min(len(before.Escalation), len(now.Escalation)):]
			return slices.ContainsFunc(added, func(t api.RungTaken) bool { return t.By != "" && t.Do == cmp.Or(rung, next.Do) })
		},
	}
}

func checkEscalation(s *api.Status, rung string) (already string, err error) {
	next, left := RungToTake(s)
	switch {
	case s.Phase != api.Draining:
		return "", notNow(api.MsgEscalate, s, "only the drain of a Draining node can be escalated")
	case rung == "" && !left:
		return "", notNowBecause(api.MsgEscalate, s, fmt.Sprintf("the escalation of %s has no rung left", s.Spec.Node))
	case allows(s.Force, rung):
		return "the drain is at " + s.Force + " already", nil
	}
	if err := s.Spec.RungFits(cmp.Or(rung, next.Do)); err != nil {
		return "", notNowBecause(api.MsgEscalate, s, fmt.Sprintf("the drain of %s cannot be forced: %s", s.Spec.Node, err))
	}
	return "", nil
}

// allows reports whether what a rung would allow is allowed already: there is no more force than kill.
func allows(force, rung string) bool {
	return force != "" && (force == rung || force == spec.Kill && rung == spec.BypassBudget)
}

// NextRung is the first rung of the maintenance's escalation whose turn the present attempt has not had; left is false
// where all had theirs.
func NextRung(s *api.Status) (rung spec.Rung, left bool) {
	plan := rungsLeft(s)
	if len(plan) == 0 {
		return spec.Rung{}, false
	}
	return plan[0], true
}

// RungToTake is the rung that Escalate takes where it names none: the next one, but for the SLA's, which keeps its time.
func RungToTake(s *api.Status) (rung spec.Rung, left bool) {
	for _, rung := range rungsLeft(s) {
		if rung.Do != spec.ExpireSLA {
			return rung, true
		}
	}
	return spec.Rung{}, false
}

func rungsLeft(s *api.Status) []spec.Rung {
	plan := s.Spec.Ladder()
	for _, taken := range s.Escalation {
		if taken.Planned && len(plan) > 0 {
			plan = plan[1:]
		}
	}
	return plan
}

// SkipPod leaves a pod, NAMESPACE/NAME, on a Draining node: it is neither evicted nor waited for. The name alone is enough
// for a pod that is known to block the drain.
func SkipPod(pod string) Message {
	return Message{
		name: api.MsgSkipPod,
		// The worker looks for the pod first.
		slow: true,
		payload: func(to addressee) any {
			full := pod
			if to.status != nil {
				// The check has found it.
				full, _ = podOf(to.status, pod)
			}
			return api.SkipPod{Message: to.Message, Pod: full, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			if s.Phase != api.Draining {
				return "", notNow(api.MsgSkipPod, s, "pods can be skipped only while it is Draining")
			}
			if s.Spec.Drain.Mode == spec.ModeExternal {
				return "", notNow(api.MsgSkipPod, s, "it is emptied by somebody else, and Drydock does not look at its pods")
			}
			full, err := podOf(s, pod)
			if err == nil && slices.Contains(s.SkippedPods, full) {
				return full + " is skipped already", nil
			}
			return "", err
		},
		effect: func(before, now *api.Status) bool {
			full, err := podOf(before, pod)
			return now.Phase != api.Draining || err == nil && slices.Contains(now.SkippedPods, full)
		},
	}
}

// Consent lets a Draining maintenance lose what it was not asked to: pods that nobody re-creates (force), the data of
// emptyDir volumes (deleteEmptyDir), of the pods named, NAMESPACE/NAME, or of all. Whoever consents has to say why.
func Consent(force, deleteEmptyDir bool, pods []string) Message {
	return Message{
		name: api.MsgConsent,
		payload: func(to addressee) any {
			return api.Consent{Message: to.Message, Force: force, DeleteEmptyDir: deleteEmptyDir, Pods: pods, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase != api.Draining:
				return "", notNow(api.MsgConsent, s, "there is no drain to consent to")
			case s.Spec.Drain.Mode != spec.ModeEvict:
				return "", notNowBecause(api.MsgConsent, s, fmt.Sprintf("the drain mode of %s is %s, so no pod waits for consent", s.Spec.Node, s.Spec.Drain.Mode))
			case consented(s, force, deleteEmptyDir):
				return "has that consent already, for all pods", nil
			}
			return "", nil
		},
		effect: func(before, now *api.Status) bool {
			return now.Phase != api.Draining || len(now.Consents) > len(before.Consents)
		},
		// The policy judges it first.
		slow: true,
	}
}

// consented reports whether the loss is consented to for all pods.
func consented(s *api.Status, force, deleteEmptyDir bool) bool {
	hasForce, hasDelete := s.Spec.Drain.Force, s.Spec.Drain.DeleteEmptyDir
	for _, c := range s.Consents {
		if len(c.Pods) == 0 {
			hasForce, hasDelete = hasForce || c.Force, hasDelete || c.DeleteEmptyDir
		}
	}
	return (hasForce || !force) && (hasDelete || !deleteEmptyDir)
}

// podOf completes a bare name with the namespace of the one pod of that name that is known of the drain.
func podOf(s *api.Status, pod string) (string, error) {
	if strings.Contains(pod, "/") {
		return pod, nil
	}
	known := slices.Clone(s.SkippedPods)
	if s.Drain != nil {
		for _, b := range s.Drain.Blockers {
			// A volume that is still attached is listed too, and is no pod.
			if b.Reason != "VolumeAttached" {
				known = append(known, b.Pod)
			}
		}
	}
	unknown := &UnknownPodError{Node: s.Spec.Node, Pod: pod}
	for _, full := range known {
		if slices.Contains(unknown.Known, full) {
			continue
		}
		unknown.Known = append(unknown.Known, full)
		if _, name, ok := strings.Cut(full, "/"); ok && name == pod {
			unknown.Named = append(unknown.Named, full)
		}
	}
	if len(unknown.Named) == 1 {
		return unknown.Named[0], nil
	}
	return "", unknown
}

// RetryNow ends the pause of a drain whose evictions were refused, or of a node that was given back.
func RetryNow() Message {
	return Message{
		name:    api.MsgRetryNow,
		payload: simple,
		check: func(s *api.Status) (string, error) {
			why := "there is no pause to end"
			switch {
			case s.Phase == api.Draining && s.Spec.Drain.Mode != spec.ModeEvict:
				why = fmt.Sprintf("its drain mode is %s, so there is no eviction to try again", s.Spec.Drain.Mode)
			case s.Phase == api.Draining, s.Phase == api.Pending && s.NextAttemptAt != nil:
				return "", nil
			case s.Phase == api.Pending && s.Slot == nil && strings.HasPrefix(s.WaitingFor, "its time: "):
				why = "it waits for " + s.WaitingFor
			case s.Phase == api.Pending:
				why = "it waits for a slot, and not for its next attempt"
			case s.Phase == api.RequestorFailed:
				why = "Drydock has nothing to try again"
			}
			return "", notNow(api.MsgRetryNow, s, why)
		},
		effect: func(before, now *api.Status) bool {
			switch {
			case now.Phase != before.Phase:
				return true
			case now.Phase == api.Pending:
				return now.NextAttemptAt == nil
			default:
				return heeded(before, now, api.MsgRetryNow)
			}
		},
	}
}
