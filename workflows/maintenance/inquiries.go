package maintenance

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/drain"
	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

const (
	// maxInquiries bounds the inquiries under way, inquiryWithin how long each takes: nobody waits longer for the answer.
	maxInquiries  = 20
	inquiryWithin = 2 * time.Minute
)

// inquire has an activity look into a message: ask returns why it is refused, check whether it still counts after that, and apply gives
// it effect.
func (a *admission) inquire(name string, ask func(workflow.Context) (refused string, err error), check func() error, apply func() string) (effect string) {
	if len(a.inquiries) >= maxInquiries {
		return ignored + "too many messages are looked into already: send it again later"
	}
	v := a.journal.judge()
	a.inquiries = append(a.inquiries, v)
	workflow.GoNamed(a.control.life, "inquiry: "+name, func(ctx workflow.Context) {
		refused, err := ask(ctx)
		if err == nil && refused == "" && !v.settled() {
			err = check()
		}
		switch {
		case v.settled():
		case err != nil:
			a.journal.settle(v, ignored+call.Cause(err))
		case refused != "":
			a.journal.settle(v, ignored+refused)
		default:
			a.journal.settle(v, apply())
		}
		a.inquiries = slices.DeleteFunc(a.inquiries, func(other *judgement) bool { return other == v })
	})
	return beingJudged
}

// dismiss ends what is not judged yet where the maintenance ends.
func (a *admission) dismiss() {
	for _, v := range a.inquiries {
		if !v.settled() {
			a.journal.settle(v, ignored+errEnding.Error())
		}
	}
	a.dismissWords(ignored + errEnding.Error())
}

func (a *admission) idle() bool { return len(a.inquiries) == 0 }

// amend applies a change of the specification, if the policy allows that. A message that comes before the maintenance has read its input
// waits for that: until then nobody knows whether there is a policy.
func (a *admission) amend(name string, change func(*spec.Maintenance), check func() error, apply func() string) (effect string) {
	if !a.mayBeRefused() {
		return apply()
	}
	return a.inquire(name, func(ctx workflow.Context) (string, error) {
		if err := workflow.Await(ctx, func() bool { return a.spec.Node != "" }); err != nil {
			return "", err
		}
		return a.judge(ctx, name, change)
	}, check, apply)
}

// amendSince010 is amend for a message that took effect at once in v0.1.0.
func (a *admission) amendSince010(name string, change func(*spec.Maintenance), check func() error, apply func() string) (effect string) {
	if a.mayBeRefused() && !changed(a.control.life, changeJudge+name) {
		return apply()
	}
	return a.amend(name, change, check, apply)
}

func (a *admission) mayBeRefused() bool { return a.spec.Node == "" || a.prepared.Policy }

// judge asks the policy whether the maintenance may be changed.
func (a *admission) judge(ctx workflow.Context, name string, change func(*spec.Maintenance)) (refused string, err error) {
	if !a.prepared.Policy {
		return "", nil
	}
	asked := a.spec
	change(&asked)
	ctx = call.Within(call.Quick(ctx, "judge "+name), inquiryWithin)
	judged, err := run[policyactivity.Judged](ctx, call.Policies.JudgeAmendment, policyactivity.AmendmentInput{Maintenance: encode(asked)})
	return judged.Refused, err
}

// findPods says which of some pods is not on the node; empty if all are.
func (a *admission) findPods(ctx workflow.Context, pods ...string) (missing string, err error) {
	for _, pod := range pods {
		finding := call.Within(call.Quick(ctx, "look for pod "+pod), inquiryWithin)
		found, err := run[drain.PodFound](finding, call.Drains.FindPod, drain.PodInput{Node: a.spec.Node, Pod: pod})
		if err != nil || found.Missing != "" {
			return found.Missing, err
		}
	}
	return "", nil
}
