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

// inquiries are messages that an activity has to look into before they count. What became of one stands in its record once
// that is known.
type inquiries struct {
	*identity
	journal *journal
	stop    *stop
	clock   *clock
	open    []*inquiry
}

// inquiry is a message that is looked into. It is over where its outcome is known.
type inquiry struct {
	name      string
	judgement *judgement
	over      bool
	// ask says why it is refused, check whether it fits by then, and apply gives it effect.
	ask   func(ctx workflow.Context) (refused string, err error)
	check func() error
	apply func() string
}

const (
	// maxInquiries bounds those under way, and inquiryWithin the time that each takes: nobody waits for one for long.
	maxInquiries  = 20
	inquiryWithin = 2 * time.Minute
)

// begin looks into a message, and says so.
func (q *inquiries) begin(i inquiry) (effect string) {
	if len(q.open) >= maxInquiries {
		return ignored + "too many messages are looked into already: send it again later"
	}
	i.judgement = judgementOf(q.journal)
	q.open = append(q.open, &i)
	workflow.GoNamed(q.clock.life, "inquiry: "+i.name, func(ctx workflow.Context) {
		refused, err := i.ask(ctx)
		if err == nil && refused == "" && !i.over {
			err = i.check()
		}
		switch {
		case i.over:
		case err != nil:
			q.settle(&i, ignored+call.Cause(err))
		case refused != "":
			q.settle(&i, ignored+refused)
		default:
			q.settle(&i, i.apply())
		}
		q.open = slices.DeleteFunc(q.open, func(other *inquiry) bool { return other == &i })
	})
	return beingJudged
}

func (q *inquiries) settle(i *inquiry, effect string) {
	i.over = true
	q.journal.settle(i.judgement, effect)
}

// dismiss ends those under way where the maintenance ends.
func (q *inquiries) dismiss() {
	for _, i := range q.open {
		if !i.over {
			q.settle(i, ignored+errEnding.Error())
		}
	}
}

// idle tells that nothing is looked into.
func (q *inquiries) idle() bool { return len(q.open) == 0 }

// amend makes a maintenance another than was asked for, if the policy lets it be that.
func (q *inquiries) amend(name string, asked spec.Maintenance, check func() error, apply func() string) (effect string) {
	if !q.prepared.Policy {
		return apply()
	}
	return q.begin(inquiry{name: name, check: check, apply: apply, ask: func(ctx workflow.Context) (string, error) {
		return q.judge(ctx, name, asked)
	}})
}

// amendSince is amend for a message that had its effect at once before a named change. One that comes before the maintenance has read
// its input waits for that: until then nobody knows whether there is a policy.
func (q *inquiries) amendSince(change, name string, asked func() spec.Maintenance, check func() error, apply func() string) (effect string) {
	unread := q.spec.Node == ""
	if !unread && !q.prepared.Policy || !changed(q.clock.life, change) {
		return apply()
	}
	return q.begin(inquiry{name: name, check: check, apply: apply, ask: func(ctx workflow.Context) (string, error) {
		if err := workflow.Await(ctx, func() bool { return q.spec.Node != "" }); err != nil {
			return "", err
		}
		return q.judge(ctx, name, asked())
	}})
}

// judge asks the policy whether a maintenance may become another.
func (q *inquiries) judge(ctx workflow.Context, name string, asked spec.Maintenance) (refused string, err error) {
	if !q.prepared.Policy {
		return "", nil
	}
	ctx = call.Within(call.Quick(ctx, "judge "+name), inquiryWithin)
	var judged policyactivity.Judged
	in := policyactivity.AmendmentInput{Maintenance: jsonOf(asked)}
	err = workflow.ExecuteActivity(ctx, call.Policies.JudgeAmendment, in).Get(ctx, &judged)
	return judged.Refused, err
}

// findPods says which of some pods is not on the node; empty where all are.
func (q *inquiries) findPods(ctx workflow.Context, pods ...string) (missing string, err error) {
	for _, pod := range pods {
		looking := call.Within(call.Quick(ctx, "look for pod "+pod), inquiryWithin)
		var found drain.PodFound
		err := workflow.ExecuteActivity(looking, call.Drains.FindPod, drain.PodInput{Node: q.spec.Node, Pod: pod}).Get(looking, &found)
		if err != nil || found.Missing != "" {
			return found.Missing, err
		}
	}
	return "", nil
}
