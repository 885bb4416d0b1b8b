package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

type option func(p *profiles)

// given is the state of a workflow that knows which transitions run.
func given(options ...option) *profiles {
	p := &profiles{Known: true}
	for _, o := range options {
		o(p)
	}
	return p
}

func ref(node string) activity.Ref { return activity.Ref{Profile: "p", Node: node} }

func input(node string) api.ProfileTransitionInput {
	return api.ProfileTransitionInput{Profile: "p", Node: node, UID: "u-" + node, From: state.Required, To: state.Maintenance, Since: now}
}

func decided(node string) option { return func(p *profiles) { p.begin(input(node), now) } }

// runs is a transition that has started, as changed.
func runs(node string, changes ...func(*transition)) option {
	return func(p *profiles) {
		u := transition{UnderWay: activity.UnderWay{Ref: ref(node), UID: "u-" + node, RunID: "run-" + node, To: state.Maintenance, Began: now}}
		for _, change := range changes {
			change(&u)
		}
		p.Transitions = append(p.Transitions, u)
	}
}

func stopped(u *transition)   { u.Stopped = true }
func cancelled(u *transition) { u.Cancelled = true }
func unknown(p *profiles)     { p.Known = false }
func wasReset(p *profiles)    { p.Reset(now) }

func sends(node string, at time.Duration) option {
	return func(p *profiles) { p.send(noticeOf(node, at)) }
}

func noticeOf(node string, at time.Duration) activity.Notice {
	return activity.Notice{Ref: ref(node), UID: "u", Instance: "mail", At: now.Add(at)}
}

func leaves(l leaving) option { return func(p *profiles) { p.Leaving = append(p.Leaving, l) } }

func TestProfilesDecide(t *testing.T) {
	left := activity.Left{Node: "n1", Requestor: "profile-p", RunID: "r"}
	start := controller.Key{Kind: startTransition, Of: "n1/p"}
	send := fmt.Sprintf("watch send/n1/p/mail/%d", now.UnixNano())
	for name, c := range map[string]struct {
		options  []option
		underWay []controller.Key
		want     string
	}{
		"nothing runs":                          {nil, nil, "watch evaluate"},
		"what runs is not known":                {[]option{unknown, leaves(leaving{Left: left}), sends("n1", 0)}, nil, "find, " + send},
		"a transition starts":                   {[]option{decided("n1")}, nil, "start/n1/p"},
		"nothing is evaluated while it does":    {[]option{decided("n1"), runs("n2")}, []controller.Key{start}, "start/n1/p"},
		"it has started":                        {[]option{runs("n1")}, nil, "watch evaluate"},
		"its profile is gone":                   {[]option{runs("n1", stopped)}, nil, "cancel/n1/p, watch evaluate"},
		"it will end":                           {[]option{runs("n1", stopped, cancelled)}, nil, "watch evaluate"},
		"it was to start, and a reset came":     {[]option{decided("n1"), wasReset}, nil, "find"},
		"which is decided anew":                 {[]option{decided("n1"), wasReset, func(p *profiles) { p.Known = true }}, nil, "watch evaluate"},
		"a maintenance is to end":               {[]option{leaves(leaving{Left: left})}, nil, "end/n1/profile-p/r, watch evaluate"},
		"that was requested":                    {[]option{leaves(leaving{Left: left, Requested: true})}, nil, "watch evaluate"},
		"a notification":                        {[]option{sends("n1", 0)}, nil, send + ", watch evaluate"},
		"the next follows it":                   {[]option{sends("n1", 0), sends("n1", time.Hour), sends("n1", 2*time.Hour)}, nil, send + ", watch evaluate"},
		"a worker without profiles":             {[]option{func(p *profiles) { p.Absences = 3 }}, nil, "watch evaluate"},
		"none has any":                          {[]option{func(p *profiles) { p.Absences = 4 }}, nil, "end <nil>"},
		"it was cancelled: what runs goes on":   {[]option{runs("n1"), sends("n1", 0), func(p *profiles) { p.Cancel(now) }}, nil, "end canceled"},
		"it was cancelled before it knows them": {[]option{unknown, func(p *profiles) { p.Cancel(now) }}, nil, "end canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := given(c.options...)
			d := controllertest.Again(t, p, controller.At(now, c.underWay...), show)
			if got := show(d); got != c.want {
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
	if d.End != nil {
		all = append(all, fmt.Sprint("end ", d.End.Err))
	}
	return strings.Join(all, ", ")
}

// startOf has what was decided start.
func startOf(t *testing.T, p *profiles) controller.Start {
	t.Helper()
	d := p.Decide(controller.At(now))
	if len(d.Effects) != 1 {
		t.Fatalf("%+v", d.Effects)
	}
	return d.Effects[0].(controller.Start)
}

func TestMissingPermissionsAreShown(t *testing.T) {
	p := given()
	denied := []preflight.Ungranted{{Permissions: "patch leases", By: "rbac-profiles.yaml"}, {Permissions: "delete pods", By: "rbac-delete-pods.yaml"}}
	after := func(denied *[]preflight.Ungranted) api.ProfilesState {
		t.Helper()
		o := controller.Came(controller.Activity{Meta: controller.Meta{Key: controller.Key{Kind: evaluateNodes}}}, activity.Evaluated{Denied: denied})
		p.Outcome(o, now)
		state, err := question{}.Answer(p, now)
		if err != nil {
			t.Fatal(err)
		}
		return state.(api.ProfilesState)
	}
	state := after(&denied)
	if len(state.Troubles) != len(denied) {
		t.Fatalf("%+v", state.Troubles)
	}
	for i, u := range denied {
		if s := state.Troubles[i]; s.What != "profiles need permissions that are missing: "+u.Permissions || s.Why != "grant them with "+u.By || !s.Since.Equal(now) {
			t.Errorf("%+v", s)
		}
		if page := p.Page(now).Details; !strings.Contains(page, u.By) {
			t.Errorf("%s\nlacks %s", page, u.By)
		}
	}
	if in := p.evaluate(now).Input.(activity.EvaluateInput); !slices.Equal(in.Denied, denied) {
		t.Errorf("the next evaluation knows %q", in.Denied)
	}
	if state = after(nil); len(state.Troubles) != len(denied) {
		t.Errorf("%+v", state.Troubles)
	}
	if state = after(&[]preflight.Ungranted{}); len(state.Troubles) != 0 {
		t.Errorf("%+v", state.Troubles)
	}
}

func TestAStartThatComesToSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		taken, ended bool
	}{
		"another runs under its ID": {serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", ""), true, false},
		"it cannot be begun":        {errors.New("no such type"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := given(decided("n1"))
			o := controller.Came(startOf(t, p), nil)
			o.Err = c.err
			p.Outcome(o, now)
			u := p.find(ref("n1"))
			if u == nil || u.IDTaken != c.taken || u.Ended != c.ended || len(p.Failed) > 0 != c.ended || len(p.Troubles()) > 0 {
				t.Errorf("%+v, failed %+v, troubles %+v", u, p.Failed, p.Troubles())
			}
			if got := show(p.Decide(controller.At(now))); got != "watch evaluate" {
				t.Error(got)
			}
		})
	}
}

func TestAStartThatWasUnderWayAtAResetCounts(t *testing.T) {
	p := given(decided("n1"))
	start := startOf(t, p)
	p.Reset(now)
	if got := show(p.Decide(controller.At(now, start.Key))); got != "find" || p.find(ref("n1")) == nil {
		t.Errorf("%q, %+v", got, p.Transitions)
	}
	o := controller.Came(start, nil)
	o.Run, o.Stale = "r", true
	if p.Outcome(o, now); p.find(ref("n1")).RunID != "r" {
		t.Errorf("%+v", p.Transitions)
	}
}

func TestALookUpFromBeforeAResetDoesNotCount(t *testing.T) {
	p := given(unknown)
	o := controller.Came(p.Decide(controller.At(now)).Effects[0], api.List[activity.UnderWay]{{Ref: ref("n1"), RunID: "r"}})
	o.Stale = true
	if p.Outcome(o, now); p.Known {
		t.Error("it counts")
	}
	o.Stale = false
	if p.Outcome(o, now); !p.Known || p.find(ref("n1")) == nil {
		t.Errorf("%+v", p)
	}
}

// The next run of a transition is another, whose end says what it came to.
func TestTheEndOfAnotherRunSaysNothing(t *testing.T) {
	p := given(decided("n1"))
	start := startOf(t, p)
	o := controller.Came(start, nil)
	o.Run = "first"
	p.Outcome(o, now)
	o = controller.Came(start, api.ProfileTransitionEnded{Moved: now})
	o.What, o.Run = controller.Ended, "another"
	if p.Outcome(o, now); p.find(ref("n1")).Ended {
		t.Error("the end of another run counts")
	}
	changes := p.Changes
	o.Run, o.What = "first", controller.Terminated
	u := p.find(ref("n1"))
	u.Stopped, u.Cancelled = true, true
	if p.Outcome(o, now); u.Ended || show(p.Decide(controller.At(now))) != "cancel/n1/p, watch evaluate" {
		t.Error("a run that was terminated may have been reset, and then has to be cancelled again")
	}
	o.What = controller.Ended
	if p.Outcome(o, now); !p.find(ref("n1")).Ended || p.Changes == changes {
		t.Errorf("%+v", p)
	}
}

func TestAMaintenanceThatIsDoneMayBeGivenBackAfterAll(t *testing.T) {
	left := activity.Left{Node: "n1", Requestor: "profile-p", RunID: "r"}
	done := left
	done.Done = true
	p := given(leaves(leaving{Left: done, Requested: true}))
	p.leave(left)
	if len(p.Leaving) != 1 || p.Leaving[0] != (leaving{Left: left}) {
		t.Errorf("%+v", p.Leaving)
	}
	p.Leaving[0].Requested = true
	if p.leave(left); len(p.Leaving) != 1 || !p.Leaving[0].Requested {
		t.Errorf("%+v", p.Leaving)
	}
}

func TestWhatCannotBeEndedIsDecidedAnew(t *testing.T) {
	left := activity.Left{Node: "n1", Requestor: "profile-p", RunID: "r"}
	p := given(leaves(leaving{Left: left}), runs("n1", stopped))
	for _, x := range p.Decide(controller.At(now)).Effects {
		p.Outcome(controller.Came(x, errors.New("no such luck")), now)
	}
	if len(p.Leaving) != 0 || p.Changes == 0 {
		t.Errorf("%+v", p.Leaving)
	}
	if got := show(p.Decide(controller.At(now))); got != "cancel/n1/p, watch evaluate" || len(p.Troubles()) != 2 || len(p.Notes) != 2 {
		t.Errorf("%q, troubles %+v, notes %+v", got, p.Troubles(), p.Notes)
	}
}

func TestANotificationIsGivenUpOrFollowed(t *testing.T) {
	p := given(sends("n1", 0), sends("n1", time.Hour))
	first := p.Decide(controller.At(now)).Watches[0]
	if first.Call.Within != sendWithin {
		t.Errorf("%+v", first.Call)
	}
	p.Outcome(controller.Came(first, errors.New("nobody answers")), now)
	if len(p.Sending) != 1 || len(p.Notes) != 1 || p.Notes[0].What != "notification mail about n1 was not sent" || len(p.Troubles()) != 0 {
		t.Errorf("%+v, %+v, %+v", p.Sending, p.Notes, p.Troubles())
	}
	late := now.Add(48 * time.Hour)
	next := p.Decide(controller.At(late)).Watches[0]
	if next.Key == first.Key || next.Call.Within != sendAtLeast {
		t.Errorf("%+v", next)
	}
	p.Outcome(controller.Came(next, activity.Sent{}), late)
	if len(p.Sending) != 0 || len(p.Notes) != 1 {
		t.Errorf("%+v, %+v", p.Sending, p.Notes)
	}
}

func TestBoundsOfWhatIsUnderWay(t *testing.T) {
	var all []option
	for i := range 350 {
		all = append(all, runs(fmt.Sprint("n", i), func(u *transition) {
			if i >= 250 {
				u.To = state.Operational
			}
		}))
	}
	p := given(all...)
	if n, forward := p.room(now); n != 50 || forward != 50 {
		t.Errorf("room %d, %d forward", n, forward)
	}
	for i := range 100 {
		p.begin(input(fmt.Sprint("m", i)), now)
	}
	if n, forward := p.room(now); len(p.running()) != maxUnderWay || n != 0 || forward != 0 {
		t.Errorf("%d run, room %d, %d forward", len(p.running()), n, forward)
	}
	if n, _ := given().room(now); n != beginAtOnce {
		t.Errorf("%d at once", n)
	}
	for i := range maxFailed + 10 {
		p.fail(activity.UnderWay{Ref: ref(fmt.Sprint("f", i))}, "why", now)
	}
	if _, forward := p.room(now); len(p.Failed) != maxFailed || forward != 0 {
		t.Errorf("%d failed, %d forward", len(p.Failed), forward)
	}
	for i := range maxSending + 10 {
		p.send(noticeOf(fmt.Sprint("n", i), 0))
	}
	if len(p.Sending) != maxSending || p.noticeRoom() != 0 || given().noticeRoom() != sendAtOnce {
		t.Errorf("%d are being sent", len(p.Sending))
	}
}

// large is a state with as much under way as there may be.
func large() *profiles {
	p := given()
	random := rand.New(rand.NewPCG(1, 2))
	long := ""
	for i := range maxUnderWay {
		long = ""
		for range 15 {
			long += strconv.FormatUint(random.Uint64(), 16)
		}
		in := input(fmt.Sprint("n", i, ".", long))
		in.Claims = []check.Claim{{LeaseName: check.LeaseName{Namespace: long, Name: in.Node}, Holder: in.Node, At: now}}
		in.Triggers = []string{long, long}
		u := activity.UnderWay{Ref: ref(in.Node), UID: in.UID, Began: now, Claims: in.Claims}
		p.Transitions = append(p.Transitions, transition{UnderWay: u})
		if i < beginAtOnce {
			p.Transitions[i].Input = &in
		} else {
			p.Transitions[i].RunID = long
		}
		p.fail(u, long, now)
	}
	for i := range maxSending {
		n := noticeOf(fmt.Sprint("n", i, ".", long), 0)
		n.Why = long
		p.send(n)
	}
	return p
}

func TestALargeStateIsHandedOver(t *testing.T) {
	p := large()
	data, err := json.Marshal(p)
	packed, packErr := api.Pack(p)
	if err != nil || packErr != nil || len(packed) > 1_000_000 {
		t.Errorf("%d bytes, packed %d, %v, %v", len(data), len(packed), err, packErr)
	}
}

// BenchmarkDecide is a decision with as much under way as there may be: it should take far less than a second.
func BenchmarkDecide(b *testing.B) {
	p := large()
	for b.Loop() {
		p.Decide(controller.At(now))
	}
}

// Nodes that wait for a window keep no others from theirs.
func TestThoseThatWaitForASlotLeaveRoom(t *testing.T) {
	for name, c := range map[string]struct {
		waits int
		want  int
	}{"failed": {0, 0}, "waiting": {1, maxForward}} {
		p := &profiles{}
		for i := range maxFailed {
			ref := activity.Ref{Profile: "p", Node: fmt.Sprint("n", i)}
			p.Failed = append(p.Failed, failed{Failed: activity.Failed{Ref: ref, Until: now.Add(time.Minute)}, Waits: c.waits})
		}
		if _, forward := p.room(now); forward != c.want {
			t.Errorf("%s: room for %d, want %d", name, forward, c.want)
		}
	}
}
