package client

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/validation"
)

// Approve lets a maintenance that waits for approval go on.
func Approve() Message { return decision(api.MsgApprove, false) }

// Deny ends a maintenance that waits for approval.
func Deny() Message { return decision(api.MsgDeny, true) }

func decision(name string, denied bool) Message {
	word := map[bool]string{true: "denied", false: "approved"}
	return Message{
		name:    name,
		payload: simple,
		check: func(s *api.Status) (string, error) {
			switch decided := s.Approval; {
			case decided != nil && decided.Denied == denied:
				return "is " + word[denied] + " already", nil
			case decided != nil:
				return "", notNowBecause(name, s, fmt.Sprintf("the maintenance of %s was %s already%s", s.Spec.Node, word[decided.Denied], colon(decided.Comment)))
			case s.Phase != api.AwaitingApproval:
				return "", notNow(name, s, "it does not wait for approval")
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return now.Approval != nil },
		// The policy judges it first.
		slow: true,
	}
}

// Reschedule moves the time before which a maintenance does not begin, for as long as it waits for that.
func Reschedule(notBefore time.Time) Message {
	return Message{
		name: api.MsgReschedule,
		payload: func(to addressee) any {
			return api.Reschedule{Message: to.Message, NotBefore: notBefore, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase != api.AwaitingApproval && s.Phase != api.Pending, s.Slot != nil, s.Attempt > 1:
				return "", notNow(api.MsgReschedule, s, "it does not wait for its time any more")
			case s.Spec.NotBefore != nil && s.Spec.NotBefore.Equal(notBefore):
				return "begins not before " + notBefore.UTC().Format(time.RFC3339) + " already", nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool {
			return now.Spec.NotBefore != nil && now.Spec.NotBefore.Equal(notBefore)
		},
		// The policy judges it first.
		slow: true,
	}
}

// Validated says that a node that is being validated, or has failed its validation, may return to production.
func Validated() Message {
	return Message{
		name:    api.MsgValidated,
		payload: simple,
		check:   func(s *api.Status) (string, error) { return "", awaitsWord(api.MsgValidated, s) },
		effect: func(before, now *api.Status) bool {
			return len(now.Messages) != len(before.Messages) || now.Phase != before.Phase
		},
	}
}

// ValidationFailed says that a node whose validation waits for somebody's word may not return to production.
func ValidationFailed() Message {
	return Message{
		name:    api.MsgValidationFailed,
		payload: simple,
		check: func(s *api.Status) (string, error) {
			if undecided(s) {
				return "has failed its validation already", nil
			}
			return "", awaitsWord(api.MsgValidationFailed, s)
		},
		effect: func(_, now *api.Status) bool { return undecided(now) },
	}
}

// awaitsWord returns an error where a maintenance does not wait for a decision about its node.
func awaitsWord(name string, s *api.Status) error {
	switch {
	case s.Phase != api.Validating:
		return notNow(name, s, "not being validated")
	case !undecided(s) && (s.Spec.Validation == nil || !s.Spec.Validation.Signal):
		return notNow(name, s, "validated by its checks alone (validation.signal is not set), and they have not failed")
	}
	return nil
}

// HookDone says that a hook of kind signal, which a maintenance waits for, is done or has failed; or its work of that kind.
func HookDone(hook string, failed bool) Message {
	awaited := func(s *api.Status) []string {
		names := slices.Clone(s.OpenHooks)
		if w := s.RunningWork(); w != nil && w.Kind == validation.KindSignal {
			names = append(names, w.Name)
		}
		return names
	}
	return ofHook(api.MsgHookDone, hook, failed, awaited)
}

// SkipHook makes a maintenance go on without a hook that it waits for.
func SkipHook(hook string) Message {
	return ofHook(api.MsgSkipHook, hook, false, func(s *api.Status) []string { return s.OpenHooks })
}

// ofHook is a message about a hook, one of those that awaited finds in a status.
func ofHook(name, hook string, failed bool, awaited func(*api.Status) []string) Message {
	return Message{
		name: name,
		payload: func(to addressee) any {
			return api.HookMessage{Message: to.Message, Hook: hook, Failed: failed, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			open := awaited(s)
			if slices.Contains(open, hook) {
				return "", nil
			}
			if len(open) == 0 {
				return "", notNow(name, s, "it waits for no hook")
			}
			return "", notNow(name, s, "it does not wait for hook "+hook)
		},
		effect: func(_, now *api.Status) bool { return !slices.Contains(awaited(now), hook) },
		slow:   true,
	}
}

// Note puts the comment that it is sent with on record, in any phase.
func Note() Message {
	return Message{
		name:    api.MsgNote,
		payload: simple,
		check:   func(*api.Status) (string, error) { return "", nil },
		effect:  func(before, now *api.Status) bool { return heeded(before, now, api.MsgNote) },
	}
}
