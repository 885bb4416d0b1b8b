package starter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"drydock/workflows"
	"drydock/workflows/spec"
)

func after(change func(*workflows.Status), s workflows.Status) *workflows.Status {
	change(&s)
	return &s
}

func to(phase workflows.Phase) func(*workflows.Status) {
	return func(s *workflows.Status) { s.Phase = phase }
}

func clockAtNoon() time.Time { return noon }

func TestMessagesAreCheckedBeforeTheyAreSent(t *testing.T) {
	external := func(s *workflows.Status) { s.Spec.Drain.Mode = spec.ModeExternal }
	held := func(s *workflows.Status) { d := noon.Add(time.Hour); s.ReadyDeadline = &d }
	opsDone := func(s *workflows.Status) {
		s.Requestors = []workflows.RequestorStatus{{Name: "ops", DoneAt: ago(time.Minute)}, {Name: "net"}}
	}
	begun := func(s *workflows.Status) { s.StartedAt = ago(time.Minute) }
	for name, c := range map[string]struct {
		message message
		view    view
		// Exactly one of already and refused is not empty where the message is not to be sent.
		already, refused string
	}{
		"done, Ready":              {doneMessage("drydock", "ops"), viewOf(workflows.Ready), "", ""},
		"done, RequestorFailed":    {doneMessage("drydock", "ops"), viewOf(workflows.RequestorFailed), "", ""},
		"done, Draining":           {doneMessage("drydock", "ops"), viewOf(workflows.Draining), "", "worker-01 is Draining: not Ready"},
		"done, Releasing":          {doneMessage("drydock", "ops"), viewOf(workflows.Releasing), "was done already", ""},
		"done, twice":              {doneMessage("drydock", "ops"), viewOf(workflows.Ready, opsDone), "ops was done already; the node is put back when net is done too", ""},
		"done, the other":          {doneMessage("drydock", "net"), viewOf(workflows.Ready, opsDone), "", ""},
		"failed, Ready":            {failedMessage("drydock", "ops", "x"), viewOf(workflows.Ready), "", ""},
		"failed, twice":            {failedMessage("drydock", "ops", "x"), viewOf(workflows.RequestorFailed), "is RequestorFailed already", ""},
		"failed, Pending":          {failedMessage("drydock", "ops", "x"), viewOf(workflows.Pending), "", "worker-01 is Pending: not Ready"},
		"retry, RequestorFailed":   {retryMessage(), viewOf(workflows.RequestorFailed), "", ""},
		"retry, Ready":             {retryMessage(), viewOf(workflows.Ready), "is Ready already", ""},
		"retry, Draining":          {retryMessage(), viewOf(workflows.Draining), "", "only a RequestorFailed node"},
		"cancel, Pending":          {cancelMessage("drydock", false, true), viewOf(workflows.Pending), "", ""},
		"cancel, Ready":            {cancelMessage("drydock", false, false), viewOf(workflows.Ready), "", ""},
		"cancel, Ready, wait":      {cancelMessage("drydock", false, true), viewOf(workflows.Ready), "", "--release"},
		"cancel, RequestorFailed":  {cancelMessage("drydock", false, false), viewOf(workflows.RequestorFailed), "", "--release"},
		"release, RequestorFailed": {cancelMessage("drydock", true, true), viewOf(workflows.RequestorFailed), "", ""},
		"cancel, Releasing":        {cancelMessage("drydock", false, false), viewOf(workflows.Releasing), "is Releasing already", ""},
		"extend, Ready":            {extendMessage(clockAtNoon, 2*time.Hour), viewOf(workflows.Ready, held), "", ""},
		"extend, no more":          {extendMessage(clockAtNoon, time.Minute), viewOf(workflows.Ready, held), "may be held until 13:00:00 already", ""},
		"extend, no deadline":      {extendMessage(clockAtNoon, time.Hour), viewOf(workflows.Ready), "for ever", ""},
		"extend, Draining":         {extendMessage(clockAtNoon, time.Hour), viewOf(workflows.Draining), "", "only a Ready node"},
		"started, Ready":           {startedMessage("drydock"), viewOf(workflows.Ready), "", ""},
		"started, twice":           {startedMessage("drydock"), viewOf(workflows.Ready, begun), "begun already", ""},
		"started, Pending":         {startedMessage("drydock"), viewOf(workflows.Pending), "", "not Ready"},
		"drained, external":        {drainedMessage("drydock"), viewOf(workflows.Draining, external), "", ""},
		"drained, by Drydock":      {drainedMessage("drydock"), viewOf(workflows.Draining), "", "drained by Drydock"},
		"drained, too early":       {drainedMessage("drydock"), viewOf(workflows.Pending, external), "", "not Draining yet"},
		"join":                     {joinMessage("drydock", "net"), viewOf(workflows.Ready), "", ""},
		"join, twice":              {joinMessage("drydock", "ops"), viewOf(workflows.Ready), "shares the maintenance already", ""},
		"join, again after done":   {joinMessage("drydock", "ops"), viewOf(workflows.Ready, opsDone), "", ""},
		"join, too late":           {joinMessage("drydock", "net"), viewOf(workflows.Releasing), "", "too late"},
		"leave":                    {leaveMessage("drydock", "net"), viewOf(workflows.Ready, opsDone), "", ""},
		"leave, a stranger":        {leaveMessage("drydock", "zed"), viewOf(workflows.Ready), "does not share", ""},
		"leave, the owner":         {leaveMessage("drydock", "ops"), viewOf(workflows.Ready), "", "cannot leave"},
	} {
		already, err := c.message.check(c.view.Status)
		if c.already == "" != (already == "") || !strings.Contains(already, c.already) {
			t.Errorf("%s: already = %q, want %q", name, already, c.already)
		}
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: error = %v, want %q", name, err, c.refused)
		}
	}
}

func TestMessagesHaveTheirEffect(t *testing.T) {
	ready := *viewOf(workflows.Ready, func(s *workflows.Status) { d := noon; s.ReadyDeadline = &d }).Status
	shared := *viewOf(workflows.Ready, func(s *workflows.Status) {
		s.Requestors = append(s.Requestors, workflows.RequestorStatus{Name: "net"})
	}).Status
	netDone := func(s *workflows.Status) {
		s.Requestors = []workflows.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: &noon}}
	}
	for name, c := range map[string]struct {
		message message
		before  workflows.Status
		change  func(*workflows.Status)
		said    string
	}{
		"done, the last":  {doneMessage("drydock", "ops"), ready, to(workflows.Releasing), "ops is done"},
		"done, of two":    {doneMessage("drydock", "net"), shared, netDone, "when ops is done too"},
		"failed":          {failedMessage("drydock", "ops", ""), ready, to(workflows.RequestorFailed), "stays out of service"},
		"retry":           {retryMessage(), *viewOf(workflows.RequestorFailed).Status, to(workflows.Ready), "is Ready"},
		"cancel early":    {cancelMessage("drydock", false, false), *viewOf(workflows.Pending).Status, to(workflows.Releasing), "is cancelled"},
		"cancel late":     {cancelMessage("drydock", false, false), ready, to(workflows.RequestorFailed), "--release"},
		"cancel, release": {cancelMessage("drydock", true, false), ready, to(workflows.Cancelled), "is cancelled"},
		"extend":          {extendMessage(clockAtNoon, time.Hour), ready, func(s *workflows.Status) { d := noon.Add(time.Hour); s.ReadyDeadline = &d }, "13:00:00"},
		"started":         {startedMessage("drydock"), ready, func(s *workflows.Status) { s.StartedAt = &noon }, "begun"},
		"drained":         {drainedMessage("drydock"), *viewOf(workflows.Draining).Status, to(workflows.Ready), "is Ready"},
		"join":            {joinMessage("drydock", "net"), ready, func(s *workflows.Status) { *s = shared }, "net shares"},
		"leave":           {leaveMessage("drydock", "net"), shared, func(s *workflows.Status) { *s = ready }, "no longer"},
	} {
		before := c.before
		if c.message.effect(&before, &before) {
			t.Errorf("%s: has its effect before anything happened", name)
		}
		now := after(c.change, c.before)
		if !c.message.effect(&before, now) {
			t.Errorf("%s: its effect is not seen", name)
		}
		if said := c.message.said(now); !strings.Contains(said, c.said) {
			t.Errorf("%s: said %q, want %q in it", name, said, c.said)
		}
	}
}

func TestReleaseIsNotTakenForRequestorFailed(t *testing.T) {
	before, now := viewOf(workflows.Ready).Status, viewOf(workflows.RequestorFailed).Status
	if cancelMessage("drydock", true, false).effect(before, now) {
		t.Error("cancel --release has its effect though the node was not released")
	}
}

func TestPayloadsNameTheRun(t *testing.T) {
	who := addressee{Message: workflows.Message{By: "jane@host", Comment: "c"}, run: "run-1"}
	for want, m := range map[string]message{
		`{"by":"jane@host","comment":"c","requestor":"net","run":"run-1"}`:              doneMessage("drydock", "net"),
		`{"by":"jane@host","comment":"c","requestor":"ops","run":"run-1","reason":"r"}`: failedMessage("drydock", "ops", "r"),
		`{"by":"jane@host","comment":"c","run":"run-1"}`:                                retryMessage(),
		`{"by":"jane@host","comment":"c","release":true,"run":"run-1"}`:                 cancelMessage("drydock", true, false),
		`{"by":"jane@host","comment":"c","for":"1h0m0s","run":"run-1"}`:                 extendMessage(clockAtNoon, time.Hour),
		`{"by":"jane@host","comment":"c","requestor":"net"}`:                            joinMessage("drydock", "net"),
	} {
		got, err := json.Marshal(m.payload(who))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", m.name, got, err, want)
		}
	}
	got, err := json.Marshal(extendMessage(clockAtNoon, 0).payload(who))
	if err != nil || strings.Contains(string(got), `"for"`) {
		t.Errorf("extend without a time: %s (%v); its absence means the ready timeout", got, err)
	}
}

func TestNewlyReceivedIsOurs(t *testing.T) {
	old := workflows.Received{At: noon, Name: "done", By: "me", Effect: "old"}
	before := &workflows.Status{Messages: []workflows.Received{old}}
	for name, c := range map[string]struct {
		now  []workflows.Received
		want string
	}{
		"nothing new":    {[]workflows.Received{old}, ""},
		"somebody's":     {[]workflows.Received{old, {At: noon, Name: "done", By: "you", Effect: "x"}}, ""},
		"another one":    {[]workflows.Received{old, {At: noon, Name: "retry", By: "me", Effect: "x"}}, ""},
		"ours":           {[]workflows.Received{old, {At: noon.Add(1), Name: "done", By: "me", Effect: "new"}}, "new"},
		"old forgotten":  {[]workflows.Received{{At: noon.Add(1), Name: "done", By: "me", Effect: "new"}}, "new"},
		"the latest one": {[]workflows.Received{{At: noon.Add(1), Name: "done", By: "me", Effect: "a"}, {At: noon.Add(2), Name: "done", By: "me", Effect: "b"}}, "b"},
	} {
		got, ok := newlyReceived(before, &workflows.Status{Messages: c.now}, "done", "me")
		if ok != (c.want != "") || got.Effect != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
