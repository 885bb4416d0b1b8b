package client

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// Done says that a requestor is done with a node, which is put back when all requestors are.
func Done(requestor string) Message {
	return Message{
		name: api.MsgDone,
		payload: func(to addressee) any {
			return api.Done{Message: to.Message, Requestor: requestor, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch s.Phase {
			case api.Ready, api.RequestorFailed:
			case api.Validating, api.Releasing:
				return fmt.Sprintf("was done already, and is %s", s.Phase), nil
			default:
				if s.Phase.Ended() {
					return "", notNow(api.MsgDone, s, "it has ended")
				}
				return "", notNow(api.MsgDone, s, "not Ready yet, so it cannot be marked done")
			}
			if isDone(s, requestor) {
				return requestor + " was done already", nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool {
			return now.Phase != api.Ready && now.Phase != api.RequestorFailed || isDone(now, requestor)
		},
	}
}

func isDone(s *api.Status, requestor string) bool {
	for _, r := range s.Requestors {
		if r.Name == requestor {
			return r.DoneAt != nil
		}
	}
	return false
}

// Failed says that the work of a requestor on a Ready node has failed, so that it stays out of service.
func Failed(requestor, reason string) Message {
	return Message{
		name: api.MsgFailed,
		payload: func(to addressee) any {
			return api.FailedMessage{Message: to.Message, Requestor: requestor, Run: to.run, Reason: reason}
		},
		check: func(s *api.Status) (string, error) {
			switch s.Phase {
			case api.Ready:
				return "", nil
			case api.RequestorFailed:
				return "is RequestorFailed already" + colon(s.Failure), nil
			default:
				return "", notNow(api.MsgFailed, s, "not Ready yet, so no work on it can have failed")
			}
		},
		effect: func(_, now *api.Status) bool { return now.Phase != api.Ready },
	}
}

// Retry makes a node whose work has failed Ready again; one that has failed its validation is validated again.
func Retry() Message {
	return Message{
		name:    api.MsgRetry,
		payload: simple,
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase == api.RequestorFailed, undecided(s):
				return "", nil
			case s.Phase == api.Ready:
				return "is Ready already", nil
			default:
				return "", notNow(api.MsgRetry, s, "only a RequestorFailed node, or one that has failed its validation, can be tried again")
			}
		},
		effect: func(_, now *api.Status) bool { return now.Phase != api.RequestorFailed && !undecided(now) },
	}
}

// Cancel ends a maintenance and undoes it while the node is not Ready yet. From Ready on the node may be half worked on:
// it becomes RequestorFailed, or with release is given back as it is.
func Cancel(release bool) Message {
	return Message{
		name:   api.MsgCancel,
		unseen: true,
		payload: func(to addressee) any {
			return api.Cancel{Message: to.Message, Release: release, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch s.Phase {
			case api.Releasing:
				return "is Releasing already", nil
			case api.RequestorFailed, api.Validating:
				if !release {
					return "", notNow(api.MsgCancel, s, "cancelling it changes nothing")
				}
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool {
			if now.Phase == api.Releasing || now.Phase.Ended() {
				return true
			}
			return !release && now.Phase == api.RequestorFailed
		},
	}
}

// Extend moves the end of a Ready node's ready timeout to that long from now, if it is later than it is; 0 is the
// maintenance's own ready timeout. The clock is the one of Options.Now, and time.Now where now is nil.
func Extend(duration time.Duration, now func() time.Time) Message {
	if now == nil {
		now = time.Now
	}
	return Message{
		name: api.MsgExtend,
		payload: func(to addressee) any {
			return api.Extend{Message: to.Message, For: spec.Duration(duration), Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase != api.Ready:
				return "", notNow(api.MsgExtend, s, "only a Ready node has a timeout to extend")
			case s.ReadyDeadline == nil:
				return "may be held for ever: its ready timeout is 0", nil
			case !now().Add(cmp.Or(duration, s.Spec.ReadyTimeout.Std())).After(*s.ReadyDeadline):
				return "may be held until " + s.ReadyDeadline.UTC().Format(time.RFC3339) + " already", nil
			}
			return "", nil
		},
		effect: func(before, after *api.Status) bool {
			return after.ReadyDeadline != nil && after.ReadyDeadline.After(*before.ReadyDeadline)
		},
	}
}

// Started records that the work on a Ready node has begun. It changes nothing but the record.
func Started() Message {
	return Message{
		name:    api.MsgStarted,
		payload: func(to addressee) any { return api.Started{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase != api.Ready:
				return "", notNow(api.MsgStarted, s, "not Ready yet, so no work can have begun")
			case s.StartedAt != nil:
				return fmt.Sprintf("the work has begun already, at %s", s.StartedAt.UTC().Format(time.RFC3339)), nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return now.StartedAt != nil },
	}
}

// Join makes somebody share a maintenance: the node is put back only when they too are done.
func Join(who string) Message {
	return Message{
		name:    api.MsgJoin,
		payload: func(to addressee) any { return api.Membership{Message: to.Message, Requestor: who} },
		check: func(s *api.Status) (string, error) {
			if sharesNow(s, who) {
				return who + " shares the maintenance already", nil
			}
			if s.Phase == api.Validating || s.Phase == api.Releasing {
				return "", notNow(api.MsgJoin, s, "too late to join")
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return sharesNow(now, who) },
	}
}

// sharesNow reports whether the maintenance waits for who, who may have been done with it before.
func sharesNow(s *api.Status, who string) bool { return isMember(s, who) && !isDone(s, who) }

func isMember(s *api.Status, who string) bool {
	return slices.ContainsFunc(s.Requestors, func(r api.RequestorStatus) bool { return r.Name == who })
}

// Leave takes back Join: the maintenance does not wait for who any more.
func Leave(who string) Message {
	return Message{
		name:    api.MsgLeave,
		payload: func(to addressee) any { return api.Membership{Message: to.Message, Requestor: who} },
		check: func(s *api.Status) (string, error) {
			switch {
			case who == s.Spec.Requestor:
				return "", notNowBecause(api.MsgLeave, s, fmt.Sprintf("the maintenance of %s is %s's own, who cannot leave it", s.Spec.Node, who))
			case !isMember(s, who):
				return who + " does not share the maintenance", nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return !isMember(now, who) },
	}
}
