package remediation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// option changes a remediation of two steps by objects and one by a maintenance.
type option func(r *remediation)

func given(options ...option) *remediation {
	r := &remediation{in: api.RemediationInput{Check: "workers", Node: "b", Revision: 1, Steps: []health.Remediation{
		{Template: &health.TemplateRef{Kind: "Soft"}}, {Template: &health.TemplateRef{Kind: "Hard"}}, {Maintenance: &health.Repair{}},
	}}}
	r.Begin(now)
	for _, o := range options {
		o(r)
	}
	return r
}

func madeStep(i int) option {
	return func(r *remediation) {
		r.Leased = true
		r.setStep(health.StepState{Index: i, Resource: &health.Resource{Name: fmt.Sprint("b-", i)}, StartedAt: now})
		r.Reports.Last, r.Reports.At = textOf(r.Progress), now
	}
}

func maintains(r *remediation) {
	r.Order.Step, r.Leased = 2, true
	r.takeUp(activity.BegunRepair{RunID: "m", StartedAt: now}, 2)
	r.Reports.Last, r.Reports.At = textOf(r.Progress), now
}

func ordered(o health.Order) option { return func(r *remediation) { r.Order = o } }

func TestARemediationDecides(t *testing.T) {
	healthy := ordered(health.Order{Healthy: true, Revision: 2})
	orphaned := func(since time.Duration) option {
		return func(r *remediation) {
			r.Reports.Orphaned, r.Reports.Last, r.Reports.At = now.Add(-since), textOf(r.Progress), now
		}
	}
	resumed := func(r *remediation) { r.in.Resume = true }
	follows := func(waited time.Duration, options ...option) []option {
		return append([]option{func(r *remediation) {
			r.in.Steps, r.in.Resume, r.in.Revision = r.in.Steps[:2], true, 0
			r.Begin(now.Add(-waited))
			r.Reports.Last, r.Reports.At = textOf(r.Progress), now
		}}, options...)
	}
	looked := func(r *remediation) { r.Looked = true }
	asked := func(r *remediation) {
		order{api.RemediationOrder{Check: "workers", Order: health.Order{Node: "b"}}}.Apply(r, now)
	}
	ended := func(r *remediation) {
		r.Progress.Ended, r.Ending = true, "over"
		r.in.Audited = true
	}
	reported := func(r *remediation) { r.Reports.Final = true }
	controlPlane := func(r *remediation) { r.Progress.ControlPlane = true }
	askedFor := func(r *remediation) { r.Slot.Asked = true }
	reset := func(r *remediation) { r.Reset(now) }
	hasSlot := func(r *remediation) { r.Slot = slot{GrantedAt: &now, Asked: true} }
	for name, c := range map[string]struct {
		options  []option
		underWay []controller.Key
		want     string
	}{
		"the first step":                           {nil, nil, "make/0"},
		"one thing at a time":                      {[]option{ordered(health.Order{Step: 1})}, []controller.Key{{Kind: actMake, Of: "0"}}, ""},
		"it is made: watched":                      {[]option{madeStep(0)}, nil, "watch objects, in 10m0s"},
		"it has changed":                           {[]option{madeStep(0), func(r *remediation) { r.wait("x") }}, nil, "watch objects, in 1s"},
		"the step has timed out":                   {[]option{madeStep(0), ordered(health.Order{Step: 1, TimedOut: []int{0}})}, nil, "mark, watch objects, in 10m0s"},
		"healthy":                                  {[]option{madeStep(0), healthy}, nil, "remove, in 10m0s"},
		"healthy, while a step is begun":           {[]option{madeStep(0), healthy}, []controller.Key{{Kind: actMake, Of: "1"}}, "in 10m0s"},
		"finalizers":                               {[]option{madeStep(0), healthy, func(r *remediation) { r.Removing = true }}, nil, "watch objects, in 10m0s"},
		"a maintenance needs the lease":            {[]option{ordered(health.Order{Step: 2})}, nil, "lease"},
		"and begins with it":                       {[]option{ordered(health.Order{Step: 2}), func(r *remediation) { r.Leased = true }}, nil, "maintain/2, watch objects"},
		"its end is awaited":                       {[]option{maintains}, nil, "watch objects, watch maintenance/m, in 10m0s"},
		"it is ended before all else":              {[]option{maintains, healthy}, nil, "end, watch maintenance/m, in 10m0s"},
		"and awaited":                              {[]option{maintains, healthy, func(r *remediation) { r.Maintained.Ending = true }}, nil, "watch maintenance/m, in 10m0s"},
		"and then the rest":                        {[]option{maintains, healthy, func(r *remediation) { r.Maintained = nil }}, nil, "remove, in 10m0s"},
		"an earlier workflow is looked for":        {[]option{resumed}, nil, "find, report"},
		"it waits for an order":                    {follows(0), nil, "in 1m0s"},
		"and looks for objects":                    {follows(time.Minute), nil, "look, in 10m0s"},
		"at once, if its check has none":           {follows(0, asked), nil, "look, in 10m0s"},
		"and ends where there are none":            {follows(time.Minute, looked), nil, "remove, in 10m0s"},
		"and watches those that there are":         {follows(time.Minute, looked, madeStep(1)), nil, "watch objects, in 10m0s"},
		"and makes what is ordered":                {follows(0, ordered(health.Order{Step: 1, Revision: 1})), nil, "make/1, in 10m0s"},
		"and ends what is over":                    {follows(0, func(r *remediation) { r.setStep(health.StepState{StartedAt: now, Gone: true}) }), nil, "remove, in 1s"},
		"a control-plane node asks first":          {[]option{controlPlane}, nil, "request"},
		"and begins with a slot":                   {[]option{controlPlane, hasSlot}, nil, "make/0"},
		"and keeps it":                             {[]option{controlPlane, hasSlot, madeStep(0)}, nil, "watch objects, in 10m0s"},
		"it is healthy before it has one":          {[]option{controlPlane, askedFor, healthy}, nil, "remove, release"},
		"an object may be there, by a reset":       {[]option{controlPlane, reset, healthy}, nil, "remove, left, request, report"},
		"an object may be there, it is cancelled":  {[]option{controlPlane, reset, func(r *remediation) { r.Cancel(now) }}, nil, "remove, left, request, report"},
		"before the scheduler heard of it":         {[]option{controlPlane, healthy}, nil, "remove"},
		"healthy, with something at work":          {[]option{controlPlane, hasSlot, madeStep(0), healthy}, nil, "remove, in 10m0s"},
		"it has ended":                             {[]option{controlPlane, hasSlot, madeStep(0), ended, reported}, nil, "release"},
		"it took up what was left":                 {[]option{controlPlane, madeStep(0)}, nil, "request, watch objects, in 10m0s"},
		"the check is gone":                        {[]option{madeStep(0), orphaned(10 * time.Minute)}, nil, "watch objects, in 10m0s"},
		"the check is gone for 25 minutes":         {[]option{madeStep(0), orphaned(25 * time.Minute)}, nil, "watch objects, in 5m0s"},
		"nothing has begun, and the check is gone": {[]option{orphaned(30 * time.Minute)}, nil, "remove, in 10m0s"},
		"the end is reported":                      {[]option{madeStep(0), ended}, nil, "report"},
		"and recorded":                             {[]option{madeStep(0), ended, reported}, nil, "record/node-remediation-record"},
		"of what has begun":                        {[]option{ended, reported}, nil, "end of the workflow"},
	} {
		t.Run(name, func(t *testing.T) {
			r := given(c.options...)
			d := controllertest.Again(t, r, controller.At(now, c.underWay...), show)
			got := show(d)
			if c.want == "record/node-remediation-record" {
				got, c.want = got[:min(len(got), 7)], "record/"
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// show is a decision in words.
func show(d controller.Decision) string {
	var all []string
	name := func(k controller.Key) string { return strings.TrimSuffix(k.Kind+"/"+k.Of, "/") }
	for _, x := range d.Effects {
		all = append(all, name(controller.Came(x, nil).Key))
	}
	for _, w := range d.Watches {
		all = append(all, "watch "+name(w.Key))
	}
	if !d.Wake.IsZero() {
		all = append(all, "in "+d.Wake.Sub(now).String())
	}
	if d.End != nil {
		all = append(all, "end of the workflow")
	}
	return strings.Join(all, ", ")
}

func TestAfterAResetALookUpFromBeforeDoesNotCountAndAnObjectDoes(t *testing.T) {
	r := given(func(r *remediation) { r.in.Resume = true })
	find := r.Decide(controller.At(now)).Effects[0]
	r.Reset(now)
	o := controller.Came(find, activity.BegunRepair{})
	o.Stale = true
	if r.Outcome(o, now); r.Sought {
		t.Error("a look-up from before the reset counts")
	}
	r = given()
	begin := r.Decide(controller.At(now)).Effects[0]
	r.Reset(now)
	o = controller.Came(begin, activity.EnsuredObject{Resource: &health.Resource{Name: "b-0"}, StartedAt: now})
	o.Stale = true
	if r.Outcome(o, now); len(r.left()) != 1 || !r.Reports.Urgent {
		t.Errorf("%+v", r.Progress)
	}
}

// A report tells the check in full what fails, and nothing of reports that were not delivered.
func TestAReportSaysWhatFails(t *testing.T) {
	r := given(madeStep(0))
	r.Fails(controller.Key{Kind: sendReport}, "report to the check", "no such luck", now)
	if r.Decide(controller.At(now)); r.Progress.Trouble != "" {
		t.Errorf("it tells of itself: %s", r.Progress.Trouble)
	}
	why := strings.Repeat("may not ", 100) + "grant it with rbac.yaml"
	r.Fails(controller.Key{Kind: actRemove}, "remove what remediates b", why, now)
	if r.Decide(controller.At(now)); r.Progress.Trouble != "remove what remediates b: "+why {
		t.Errorf("it tells of %s", r.Progress.Trouble)
	}
}

func TestTheDetailsShowWhatFails(t *testing.T) {
	r := given(madeStep(0))
	r.Fails(controller.Key{Kind: actRemove}, "remove what remediates b", "grant it with rbac.yaml", now)
	if page := r.Page(now).Details; !strings.Contains(page, "Warning: remove what remediates b: grant it with rbac.yaml") {
		t.Error(page)
	}
}

// What the control plane cannot do without is given up, so that another control-plane node has its turn, and begun again later.
func TestANodeThatIsIndispensableIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		options []option
		result  any
	}{
		"by an object":      {nil, activity.EnsuredObject{Indispensable: "etcd's budget", Lease: activity.LeaseState{Held: true}}},
		"by a maintenance":  {[]option{ordered(health.Order{Step: 2}), func(r *remediation) { r.Leased = true }}, activity.BegunRepair{Indispensable: "etcd's budget"}},
		"by the first step": {[]option{func(r *remediation) { r.passOver(0, "no machine", now) }, ordered(health.Order{Step: 1})}, activity.EnsuredObject{Indispensable: "etcd's budget", Lease: activity.LeaseState{Held: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := given(c.options...)
			begin := r.Decide(controller.At(now)).Effects[0].(controller.Activity)
			switch in := begin.Input.(type) {
			case activity.ObjectInput:
				if in.Begun {
					t.Error("nothing was made, and etcd would not be asked")
				}
			case activity.RepairInput:
				if in.Begun {
					t.Error("nothing was made, and etcd would not be asked")
				}
			}
			r.Outcome(controller.Came(begin, c.result), now)
			d := r.Decide(controller.At(now))
			if got := show(d); !strings.HasPrefix(got, "remove") || r.Progress.Indispensable != "etcd's budget" {
				t.Fatalf("%q, %+v", got, r.Progress)
			}
			if in := d.Effects[0].(controller.Activity).Input.(activity.RemoveInput); in.KeepLease {
				t.Error("it keeps the lease")
			}
		})
	}
	if in := given(madeStep(0), ordered(health.Order{Step: 1})).begin(1).(controller.Activity).Input.(activity.ObjectInput); !in.Begun {
		t.Error("a step has made something, and etcd would be asked")
	}
}

func TestALargeStateIsHandedOver(t *testing.T) {
	r := given()
	text := strings.Repeat("x", 1000)
	for i := range maxSteps {
		r.setStep(health.StepState{Index: i, Resource: &health.Resource{APIVersion: text, Kind: text, Namespace: text, Name: text}, Failure: text})
	}
	r.Reports.Last = textOf(r.Progress)
	data, err := json.Marshal(r)
	if err != nil || len(data) > 1_000_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	again := given()
	if err := json.Unmarshal(data, again); err != nil || !slices.EqualFunc(again.Progress.Steps, r.Progress.Steps, func(a, b health.StepState) bool {
		return a.Index == b.Index && *a.Resource == *b.Resource
	}) {
		t.Errorf("%v", err)
	}
}

// A scheduler that begins anew asks a remediation of which it is not known whether it holds a slot: one that was reset, and one that follows
// an earlier workflow.
func TestASlotIsNotDeniedBeforeWhatWasBegunIsLookedFor(t *testing.T) {
	controlPlane := func(r *remediation) { r.in.ControlPlane = true; r.Begin(now) }
	for name, c := range map[string]struct {
		options []option
		left    any
		want    string
	}{
		"before it has looked":                  {[]option{controlPlane, func(r *remediation) { r.Reset(now) }}, nil, "unknown"},
		"the look fails":                        {[]option{controlPlane, func(r *remediation) { r.Reset(now) }}, errors.New("no API server"), "unknown"},
		"something is at work":                  {[]option{controlPlane, func(r *remediation) { r.Reset(now) }}, true, "held"},
		"nothing is at work":                    {[]option{controlPlane, func(r *remediation) { r.Reset(now) }}, false, "wanted"},
		"a step that is known is at work":       {[]option{controlPlane, madeStep(0), func(r *remediation) { r.Reset(now) }}, false, "held"},
		"it follows another":                    {[]option{func(r *remediation) { r.in.Resume = true }, controlPlane}, nil, "unknown"},
		"it follows another that was at work":   {[]option{func(r *remediation) { r.in.Resume = true }, controlPlane}, true, "held"},
		"the node is none of the control plane": {[]option{func(r *remediation) { r.Reset(now) }}, nil, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := given(c.options...)
			for _, x := range r.Decide(controller.At(now)).Effects {
				if o := controller.Came(x, c.left); o.Key.Kind == seeLeft && c.left != nil {
					r.Outcome(o, now)
				}
			}
			answer, err := slotWanted{}.Answer(r, now)
			got := "unknown"
			if err == nil {
				switch w := answer.(api.SlotWanted); {
				case w.GrantedAt != nil:
					got = "held"
				case w.Wants:
					got = "wanted"
				default:
					got = "nothing"
				}
			}
			if got != c.want {
				t.Errorf("%s, want %s: %+v, %v", got, c.want, answer, err)
			}
		})
	}
}
