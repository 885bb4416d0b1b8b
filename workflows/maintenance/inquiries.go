package maintenance

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/drain"
	policyactivity "drydock/activities/policy"
	"drydock/rules/spec"
	"drydock/workflows/call"
)

// inquiry is a message that an activity looks into before it counts. It is over where its outcome is known, which stands in
// the message's record from then on.
type inquiry struct {
	judgement *judgement
	over      bool
}

const (
	// maxInquiries bounds those under way, and inquiryWithin the time that each takes: nobody waits for one for long.
	maxInquiries  = 20
	inquiryWithin = 2 * time.Minute
)

// inquire looks into a message, and says so: ask says why it is refused, check whether it fits by then, and apply gives it effect.
func (a *admission) inquire(name string, ask func(workflow.Context) (refused string, err error), check func() error, apply func() string) (effect string) {
	if len(a.inquiries) >= maxInquiries {
		return ignored + "too many messages are looked into already: send it again later"
	}
	i := &inquiry{judgement: a.journal.judge()}
	a.inquiries = append(a.inquiries, i)
	workflow.GoNamed(a.control.life, "inquiry: "+name, func(ctx workflow.Context) {
		refused, err := ask(ctx)
		if err == nil && refused == "" && !i.over {
			err = firstOf(a.control.refuse(), check())
		}
		switch {
		case i.over:
		case err != nil:
			a.settle(i, ignored+call.Cause(err))
		case refused != "":
			a.settle(i, ignored+refused)
		default:
			a.settle(i, apply())
		}
		a.inquiries = slices.DeleteFunc(a.inquiries, func(other *inquiry) bool { return other == i })
	})
	return beingJudged
}

func (a *admission) settle(i *inquiry, effect string) {
	i.over = true
	a.journal.settle(i.judgement, effect)
}

// dismiss ends what is not judged yet where the maintenance ends.
func (a *admission) dismiss() {
	for _, i := range a.inquiries {
		if !i.over {
			a.settle(i, ignored+errEnding.Error())
		}
	}
	a.dismissWords(ignored + errEnding.Error())
}

func (a *admission) idle() bool { return len(a.inquiries) == 0 }

// amend makes a maintenance another than was asked for, if the policy lets it be that.
func (a *admission) amend(name string, asked spec.Maintenance, check func() error, apply func() string) (effect string) {
	if !a.prepared.Policy {
		return apply()
	}
	return a.inquire(name, func(ctx workflow.Context) (string, error) { return a.judge(ctx, name, asked) }, check, apply)
}

// amendSince is amend for a message that had its effect at once before a named change. One that comes before the maintenance has read
// its input waits for that: until then nobody knows whether there is a policy.
func (a *admission) amendSince(change, name string, asked func() spec.Maintenance, check func() error, apply func() string) (effect string) {
	unread := a.spec.Node == ""
	if !unread && !a.prepared.Policy || !changed(a.control.life, change) {
		return apply()
	}
	return a.inquire(name, func(ctx workflow.Context) (string, error) {
		if err := workflow.Await(ctx, func() bool { return a.spec.Node != "" }); err != nil {
			return "", err
		}
		return a.judge(ctx, name, asked())
	}, check, apply)
}

// judge asks the policy whether a maintenance may become another.
func (a *admission) judge(ctx workflow.Context, name string, asked spec.Maintenance) (refused string, err error) {
	if !a.prepared.Policy {
		return "", nil
	}
	ctx = call.Within(call.Quick(ctx, "judge "+name), inquiryWithin)
	var judged policyactivity.Judged
	in := policyactivity.AmendmentInput{Maintenance: jsonOf(asked)}
	err = workflow.ExecuteActivity(ctx, call.Policies.JudgeAmendment, in).Get(ctx, &judged)
	return judged.Refused, err
}

// findPods says which of some pods is not on the node; empty where all are.
func (a *admission) findPods(ctx workflow.Context, pods ...string) (missing string, err error) {
	for _, pod := range pods {
		looking := call.Within(call.Quick(ctx, "look for pod "+pod), inquiryWithin)
		var found drain.PodFound
		err := workflow.ExecuteActivity(looking, call.Drains.FindPod, drain.PodInput{Node: a.spec.Node, Pod: pod}).Get(looking, &found)
		if err != nil || found.Missing != "" {
			return found.Missing, err
		}
	}
	return "", nil
}
