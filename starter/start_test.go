package starter

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/startertest"
)

func TestAStartSaysWhatItWaitsFor(t *testing.T) {
	at := func(d time.Duration) func(*api.Status) {
		return func(s *api.Status) {
			to := startertest.Noon.Add(d)
			s.Spec.NotBefore = &to
		}
	}
	approval := func(s *api.Status) { s.Spec.Approval = true }
	approved := func(s *api.Status) { s.Approval = &api.ApprovalStatus{By: "amy"} }
	const started = "worker-01: maintenance for ops started"
	for name, c := range map[string]struct {
		begun begun
		want  string
	}{
		"nothing":        {begun{view: startertest.View(api.Pending)}, started},
		"a worker":       {begun{view: client.View{Maintenance: startertest.View(api.Pending).Maintenance}, unread: true}, started + "; it begins once a worker runs"},
		"its time":       {begun{view: startertest.View(api.Pending, at(time.Hour))}, started + "; it begins not before 13:00:00 CEST"},
		"its time is up": {begun{view: startertest.View(api.Pending, at(-time.Second))}, started},
		"approval":       {begun{view: startertest.View(api.AwaitingApproval, approval)}, started + `; it waits for approval: "drydock approve worker-01"`},
		"both": {begun{view: startertest.View(api.AwaitingApproval, approval, at(time.Hour))},
			started + `; it begins not before 13:00:00 CEST; it waits for approval: "drydock approve worker-01"`},
		"approved":  {begun{view: startertest.View(api.Pending, approval, approved)}, started},
		"it did so": {begun{view: startertest.View(api.Ready), adopted: true}, "worker-01: the same maintenance for ops is running already, Ready"},
		"it failed": {begun{view: startertest.View(api.RequestorFailed, func(s *api.Status) { s.Failure = "\x1b[2Jno\nfirmware" }), adopted: true},
			`worker-01: the same maintenance for ops is running already, RequestorFailed: \u{1b}[2Jno firmware`},
	} {
		if got := begunText(c.begun, "drydock", startertest.Noon); !strings.HasPrefix(got, c.want) || (c.want == started && got != started) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAStartSaysWhichProfilesHoldTheNode(t *testing.T) {
	held := api.ProfileNode{Node: "worker-01", State: state.Maintenance, Profiles: []api.NodeProfile{{Profile: "flatcar"}}}
	const want = `worker-01: the node is in-maintenance by profile flatcar too: see "drydock profile explain worker-01".`
	if got := heldText(held, "drydock"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	held.Profiles = append(held.Profiles, api.NodeProfile{Profile: "bios\x1b[2J"})
	if got := heldText(held, "drydock"); !strings.Contains(got, `profile flatcar and profile bios\u{1b}[2J too`) {
		t.Errorf("%q", got)
	}
}
