package tell

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/startertest"
)

func after(change func(*api.Status), s api.Status) *api.Status {
	change(&s)
	return &s
}

func flashing(s *api.Status) { s.Work = []api.WorkRun{{Name: "flash", Kind: validation.KindSignal}} }

func flashedByJob(s *api.Status) { s.Work = []api.WorkRun{{Name: "flash", Kind: validation.KindJob}} }

func to(phase api.Phase) func(*api.Status) {
	return func(s *api.Status) { s.Phase = phase }
}

func escalateTo(do string) invocation.Message {
	return escalateMessage("drydock", startertest.ClockAtNoon, do, func(string) error { return nil })
}

func blockedBy(pods ...string) func(*api.Status) {
	return func(s *api.Status) {
		s.Drain = &api.DrainProgress{}
		for _, pod := range pods {
			s.Drain.Blockers = append(s.Drain.Blockers, api.Blocker{Pod: pod})
		}
	}
}

func skipped(pods ...string) func(*api.Status) {
	return func(s *api.Status) { s.SkippedPods = pods }
}

func consentTo() invocation.Message {
	return (&consentOptions{messageCommand: messageCommand{app: &invocation.App{Name: "drydock"}}, force: true}).message(func(string) error { return nil })
}

func consented(pods ...string) func(*api.Status) {
	return func(s *api.Status) { s.Consents = []api.ConsentGiven{{Force: true, Pods: pods}} }
}

func notBefore(at time.Time) func(*api.Status) {
	return func(s *api.Status) { s.Spec.NotBefore = &at }
}

func askedForASlot(s *api.Status) { s.Slot = &api.SlotStatus{RequestID: "run-1/1"} }

func took(do, by string) func(*api.Status) {
	return func(s *api.Status) {
		s.Escalation = append(s.Escalation, api.RungTaken{At: startertest.Noon, Do: do, By: by, Planned: by == ""})
	}
}

// tookNext is the plan's next rung, before its time.
func tookNext(do, by string) func(*api.Status) {
	return func(s *api.Status) {
		s.Escalation = append(s.Escalation, api.RungTaken{At: startertest.Noon, Do: do, By: by, Planned: true})
	}
}

func received(name, effect string) func(*api.Status) {
	return func(s *api.Status) {
		s.Messages = append(s.Messages, api.Received{At: startertest.Noon, Name: name, By: "me", Effect: effect})
	}
}

func TestMessagesAreCheckedBeforeTheyAreSent(t *testing.T) {
	external := func(s *api.Status) { s.Spec.Drain.Mode = spec.ModeExternal }
	held := func(s *api.Status) { d := startertest.Noon.Add(time.Hour); s.ReadyDeadline = &d }
	within := func(d time.Duration) func(*api.Status) {
		return func(s *api.Status) { s.Spec.ReadyTimeout = spec.Duration(d) }
	}
	notValidated := func(s *api.Status) { s.Validation = &api.ValidationStatus{State: validation.Failed} }
	denied := func(s *api.Status) { s.Approval = &api.ApprovalStatus{Denied: true, Comment: "no"} }
	silencing := func(s *api.Status) { s.OpenHooks = []string{"silence"} }
	opsDone := func(s *api.Status) {
		s.Requestors = []api.RequestorStatus{{Name: "ops", DoneAt: startertest.Ago(time.Minute)}, {Name: "net"}}
	}
	begun := func(s *api.Status) { s.StartedAt = startertest.Ago(time.Minute) }
	planned := func(rungs ...string) func(*api.Status) {
		return func(s *api.Status) {
			s.CordonedAt = startertest.Ago(10 * time.Minute)
			for i, do := range rungs {
				s.Spec.Drain.Escalation = append(s.Spec.Drain.Escalation, spec.Rung{After: spec.Duration(time.Duration(i+1) * time.Hour), Do: do})
			}
		}
	}
	forced := func(s *api.Status) { s.Force = spec.Kill }
	backingOff := func(s *api.Status) { at := startertest.Noon.Add(5 * time.Minute); s.NextAttemptAt = &at }
	for name, c := range map[string]struct {
		message invocation.Message
		view    client.View
		// Exactly one of already and refused is not empty where the message is not to be sent.
		already, refused string
	}{
		"done, Ready":              {DoneMessage("drydock", "ops"), startertest.View(api.Ready), "", ""},
		"done, RequestorFailed":    {DoneMessage("drydock", "ops"), startertest.View(api.RequestorFailed), "", ""},
		"done, Draining":           {DoneMessage("drydock", "ops"), startertest.View(api.Draining), "", "worker-01 is Draining: not Ready"},
		"done, Releasing":          {DoneMessage("drydock", "ops"), startertest.View(api.Releasing), "was done already", ""},
		"done, twice":              {DoneMessage("drydock", "ops"), startertest.View(api.Ready, opsDone), "ops was done already; the node is put back when net is done too", ""},
		"done, the other":          {DoneMessage("drydock", "net"), startertest.View(api.Ready, opsDone), "", ""},
		"failed, Ready":            {FailedMessage("drydock", "ops", "x"), startertest.View(api.Ready), "", ""},
		"failed, twice":            {FailedMessage("drydock", "ops", "x"), startertest.View(api.RequestorFailed), "is RequestorFailed already", ""},
		"failed, Pending":          {FailedMessage("drydock", "ops", "x"), startertest.View(api.Pending), "", "worker-01 is Pending: not Ready"},
		"retry, RequestorFailed":   {retryMessage(), startertest.View(api.RequestorFailed), "", ""},
		"retry, Ready":             {retryMessage(), startertest.View(api.Ready), "is Ready already", ""},
		"retry, Draining":          {retryMessage(), startertest.View(api.Draining), "", "only a RequestorFailed node"},
		"cancel, Pending":          {CancelMessage("drydock", false, true), startertest.View(api.Pending), "", ""},
		"cancel, Ready":            {CancelMessage("drydock", false, false), startertest.View(api.Ready), "", ""},
		"cancel, Ready, wait":      {CancelMessage("drydock", false, true), startertest.View(api.Ready), "", "--release"},
		"cancel, RequestorFailed":  {CancelMessage("drydock", false, false), startertest.View(api.RequestorFailed), "", "--release"},
		"release, RequestorFailed": {CancelMessage("drydock", true, true), startertest.View(api.RequestorFailed), "", ""},
		"cancel, Releasing":        {CancelMessage("drydock", false, false), startertest.View(api.Releasing), "is Releasing already", ""},
		"cancel, Validating":       {CancelMessage("drydock", false, false), startertest.View(api.Validating), "", "--release"},
		"done, Validating":         {DoneMessage("drydock", "ops"), startertest.View(api.Validating), "was done already", ""},
		"retry, Validating":        {retryMessage(), startertest.View(api.Validating), "", "has failed its validation"},
		"retry, not validated":     {retryMessage(), startertest.View(api.Validating, notValidated), "", ""},
		"validated, by checks":     {validatedMessage("drydock"), startertest.View(api.Validating), "", "validated by its checks alone"},
		"validated, failed":        {validatedMessage("drydock"), startertest.View(api.Validating, notValidated), "", ""},
		"validated, Ready":         {validatedMessage("drydock"), startertest.View(api.Ready), "", "not being validated"},
		"failed validation, twice": {validationFailedMessage("drydock"), startertest.View(api.Validating, notValidated), "has failed its validation already", ""},
		"approve":                  {decisionMessage(client.Approve(), "approved"), startertest.View(api.AwaitingApproval), "", ""},
		"approve, not asked for":   {decisionMessage(client.Approve(), "approved"), startertest.View(api.Ready), "", "does not wait for approval"},
		"approve, denied":          {decisionMessage(client.Approve(), "approved"), startertest.View(api.Releasing, denied), "", "was denied already: no"},
		"deny, twice":              {decisionMessage(client.Deny(), "denied"), startertest.View(api.Releasing, denied), "is denied already", ""},
		"skip a hook":              {hookMessage(client.SkipHook("silence"), "drydock", "silence", "skipped"), startertest.View(api.Scheduled, silencing), "", ""},
		"skip another hook":        {hookMessage(client.SkipHook("move"), "drydock", "move", "skipped"), startertest.View(api.Scheduled, silencing), "", `It waits for "silence"`},
		"work of kind signal":      {hookMessage(client.HookDone("flash", false), "drydock", "flash", "done"), startertest.View(api.Ready, flashing), "", ""},
		"other work":               {hookMessage(client.HookDone("move", false), "drydock", "move", "done"), startertest.View(api.Ready, flashing), "", "does not wait for hook move"},
		"work that is no word's":   {hookMessage(client.HookDone("flash", false), "drydock", "flash", "done"), startertest.View(api.Ready, flashedByJob), "", "it waits for no hook"},
		"work is not skipped":      {hookMessage(client.SkipHook("flash"), "drydock", "flash", "skipped"), startertest.View(api.Ready, flashing), "", "it waits for no hook"},
		"skip no hook":             {hookMessage(client.SkipHook("move"), "drydock", "move", "skipped"), startertest.View(api.Ready), "", "it waits for no hook"},
		"extend, Ready":            {extendMessage(startertest.ClockAtNoon, 2*time.Hour), startertest.View(api.Ready, held), "", ""},
		"extend, no more":          {extendMessage(startertest.ClockAtNoon, time.Minute), startertest.View(api.Ready, held), "may be held until 13:00:00 CEST already", ""},
		"extend, by default less":  {extendMessage(startertest.ClockAtNoon, 0), startertest.View(api.Ready, held, within(30*time.Minute)), "may be held until 13:00:00 CEST already", ""},
		"extend, by default more":  {extendMessage(startertest.ClockAtNoon, 0), startertest.View(api.Ready, held, within(2*time.Hour)), "", ""},
		"extend, no deadline":      {extendMessage(startertest.ClockAtNoon, time.Hour), startertest.View(api.Ready), "for ever", ""},
		"extend, Draining":         {extendMessage(startertest.ClockAtNoon, time.Hour), startertest.View(api.Draining), "", "only a Ready node"},
		"started, Ready":           {startedMessage("drydock"), startertest.View(api.Ready), "", ""},
		"started, twice":           {startedMessage("drydock"), startertest.View(api.Ready, begun), "begun already", ""},
		"started, Pending":         {startedMessage("drydock"), startertest.View(api.Pending), "", "not Ready"},
		"drained, external":        {drainedMessage("drydock"), startertest.View(api.Draining, external), "", ""},
		"drained, by Drydock":      {drainedMessage("drydock"), startertest.View(api.Draining), "", "drained by Drydock"},
		"drained, too early":       {drainedMessage("drydock"), startertest.View(api.Pending, external), "", "not Draining yet"},
		"join":                     {joinMessage("drydock", "net"), startertest.View(api.Ready), "", ""},
		"join, twice":              {joinMessage("drydock", "ops"), startertest.View(api.Ready), "shares the maintenance already", ""},
		"join, again after done":   {joinMessage("drydock", "ops"), startertest.View(api.Ready, opsDone), "", ""},
		"join, too late":           {joinMessage("drydock", "net"), startertest.View(api.Releasing), "", "too late"},
		"leave":                    {leaveMessage("drydock", "net"), startertest.View(api.Ready, opsDone), "", ""},
		"leave, a stranger":        {leaveMessage("drydock", "zed"), startertest.View(api.Ready), "does not share", ""},
		"escalate, the next":       {escalateTo(""), startertest.View(api.Draining, planned(spec.GiveBack)), "", ""},
		"escalate, none left":      {escalateTo(""), startertest.View(api.Draining), "", "Name one with --do: notify, bypassBudget, kill, giveBack, fail"},
		"escalate, unplanned":      {escalateTo(spec.Kill), startertest.View(api.Draining), "", ""},
		"escalate, external":       {escalateTo(spec.Kill), startertest.View(api.Draining, external), "", "do: kill needs the drain mode evict"},
		"skip-pod, external":       {skipPodMessage("drydock", "a/db-0"), startertest.View(api.Draining, external), "", `run "drydock drained worker-01"`},
		"retry-now, external":      {retryNowMessage("drydock"), startertest.View(api.Draining, external), "", "no eviction to try again"},
		"escalate, forced already": {escalateTo(spec.BypassBudget), startertest.View(api.Draining, forced), "the drain already deletes pods without", ""},
		"escalate, Pending":        {escalateTo(spec.GiveBack), startertest.View(api.Pending), "", `"drydock status worker-01" says what it waits for`},
		"escalate, Ready":          {escalateTo(""), startertest.View(api.Ready, planned(spec.GiveBack)), "", "worker-01 is Ready: only the drain of a Draining node"},
		"skip-pod":                 {skipPodMessage("drydock", "default/web-1"), startertest.View(api.Draining), "", ""},
		"skip-pod, by its name":    {skipPodMessage("drydock", "db-0"), startertest.View(api.Draining, blockedBy("a/db-0", "a/db-1")), "", ""},
		"skip-pod, ambiguous":      {skipPodMessage("drydock", "db-0"), startertest.View(api.Draining, blockedBy("b/db-0", "a/db-0")), "", `Pass "b/db-0" or "a/db-0"`},
		"skip-pod, unknown name":   {skipPodMessage("drydock", "db-9"), startertest.View(api.Draining, blockedBy("a/db-0")), "", "Name it as NAMESPACE/db-9, or one of these: a/db-0"},
		"skip-pod, nothing known":  {skipPodMessage("drydock", "db-9"), startertest.View(api.Draining), "", "Name it as NAMESPACE/db-9."},
		"skip-pod, twice":          {skipPodMessage("drydock", "db-0"), startertest.View(api.Draining, skipped("a/db-0"), blockedBy("a/db-0")), "a/db-0 is skipped already", ""},
		"consent":                  {consentTo(), startertest.View(api.Draining), "", ""},
		"consent, Ready":           {consentTo(), startertest.View(api.Ready), "", "worker-01 is Ready: there is no drain to consent to"},
		"consent, external":        {consentTo(), startertest.View(api.Draining, external), "", "no pod waits for consent"},
		"consent, given":           {consentTo(), startertest.View(api.Draining, consented()), "has that consent already", ""},
		"consent, to a pod only":   {consentTo(), startertest.View(api.Draining, consented("a/db-0")), "", ""},
		"reschedule":               {rescheduleMessage(startertest.Noon, startertest.ClockAtNoon), startertest.View(api.Pending), "", ""},
		"reschedule, unapproved":   {rescheduleMessage(startertest.Noon, startertest.ClockAtNoon), startertest.View(api.AwaitingApproval), "", ""},
		"reschedule, the same":     {rescheduleMessage(startertest.Noon, startertest.ClockAtNoon), startertest.View(api.Pending, notBefore(startertest.Noon)), "begins not before 12:00:00 CEST already", ""},
		"reschedule, with a slot":  {rescheduleMessage(startertest.Noon, startertest.ClockAtNoon), startertest.View(api.Pending, askedForASlot), "", "does not wait for its time any more"},
		"reschedule, Ready":        {rescheduleMessage(startertest.Noon, startertest.ClockAtNoon), startertest.View(api.Ready), "", "does not wait for its time any more"},
		"skip-pod, Pending":        {skipPodMessage("drydock", "a/db-0"), startertest.View(api.Pending), "", "only while it is Draining"},
		"retry-now, Draining":      {retryNowMessage("drydock"), startertest.View(api.Draining), "", ""},
		"retry-now, given back":    {retryNowMessage("drydock"), startertest.View(api.Pending, backingOff), "", ""},
		"retry-now, for a slot":    {retryNowMessage("drydock"), startertest.View(api.Pending), "", "waits for a slot"},
		"retry-now, failed":        {retryNowMessage("drydock"), startertest.View(api.RequestorFailed), "", `"drydock retry worker-01"`},
		"retry-now, Ready":         {retryNowMessage("drydock"), startertest.View(api.Ready), "", "no pause to end"},
		"leave, the owner":         {leaveMessage("drydock", "ops"), startertest.View(api.Ready), "", "cannot leave"},
	} {
		already, err := c.message.Judge(c.view.Status)
		if c.already == "" != (already == "") || !strings.Contains(already, c.already) {
			t.Errorf("%s: already = %q, want %q", name, already, c.already)
		}
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: error = %v, want %q", name, err, c.refused)
		}
	}
}

func TestMessagesHaveTheirEffect(t *testing.T) {
	ready := *startertest.View(api.Ready, func(s *api.Status) { d := startertest.Noon; s.ReadyDeadline = &d }).Status
	shared := *startertest.View(api.Ready, func(s *api.Status) {
		s.Requestors = append(s.Requestors, api.RequestorStatus{Name: "net"})
	}).Status
	draining := *startertest.View(api.Draining, blockedBy("a/db-0"), func(s *api.Status) { s.Spec.Drain.Escalation = []spec.Rung{{Do: spec.Notify}} }).Status
	pausing := *startertest.View(api.Pending, func(s *api.Status) { s.NextAttemptAt = &startertest.Noon }).Status
	forPlans := *startertest.View(api.Ready, func(s *api.Status) {
		s.Requestors = []api.RequestorStatus{{Name: api.PlansRequestor}}
		s.Lockstep = &api.LockstepStatus{Plans: []string{"firmware", "bios"}}
	}).Status
	cancelled := func(s *api.Status) {
		s.Phase, s.Transitions = api.Cancelled, []api.Transition{{Phase: api.Cordoning}}
	}
	netDone := func(s *api.Status) {
		s.Requestors = []api.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: &startertest.Noon}}
	}
	for name, c := range map[string]struct {
		message invocation.Message
		before  api.Status
		change  func(*api.Status)
		said    string
	}{
		"done, the last":  {DoneMessage("drydock", "ops"), ready, to(api.Releasing), "ops is done"},
		"done, of two":    {DoneMessage("drydock", "net"), shared, netDone, "when ops is done too"},
		"done, for plans": {DoneMessage("drydock", api.PlansRequestor), forPlans, to(api.Releasing), "done; plans firmware, bios go on without the node"},
		"failed":          {FailedMessage("drydock", "ops", ""), ready, to(api.RequestorFailed), "stays out of service"},
		"retry":           {retryMessage(), *startertest.View(api.RequestorFailed).Status, to(api.Ready), "is Ready"},
		"cancel early":    {CancelMessage("drydock", false, false), *startertest.View(api.Pending).Status, to(api.Releasing), "cancelled; the node "},
		"cancel late":     {CancelMessage("drydock", false, false), ready, to(api.RequestorFailed), "--release"},
		"cancel, release": {CancelMessage("drydock", true, false), ready, to(api.Cancelled), "cancelled; the node "},
		"cancel, plans'":  {CancelMessage("drydock", true, false), forPlans, cancelled, "being put back, and plans firmware, bios go on without the node"},
		"extend":          {extendMessage(startertest.ClockAtNoon, time.Hour), ready, func(s *api.Status) { d := startertest.Noon.Add(time.Hour); s.ReadyDeadline = &d }, "13:00:00"},
		"started":         {startedMessage("drydock"), ready, func(s *api.Status) { s.StartedAt = &startertest.Noon }, "begun"},
		"drained":         {drainedMessage("drydock"), *startertest.View(api.Draining).Status, to(api.Ready), "is Ready"},
		"join":            {joinMessage("drydock", "net"), ready, func(s *api.Status) { *s = shared }, "net shares"},
		"escalate":        {escalateTo(""), draining, took(spec.Notify, "me"), "notify is taken"},
		"kill": {escalateTo(spec.Kill), draining, func(s *api.Status) {
			took(spec.Kill, "me")(s)
			s.Force = spec.Kill
		}, "kill is taken: the drain deletes pods without their grace period"},
		"give back":          {escalateTo(spec.GiveBack), draining, func(s *api.Status) { *s = pausing }, "next attempt at 12:00:00 CEST"},
		"skip-pod":           {skipPodMessage("drydock", "db-0"), draining, skipped("a/db-0"), "db-0 stays"},
		"consent":            {consentTo(), draining, consented(), "the drain may lose pods that nobody re-creates"},
		"reschedule":         {rescheduleMessage(startertest.Noon, startertest.ClockAtNoon), *startertest.View(api.Pending).Status, notBefore(startertest.Noon), "begins not before 12:00:00"},
		"retry-now":          {retryNowMessage("drydock"), draining, received("retry-now", "tried now"), "tried again now"},
		"retry-now, pausing": {retryNowMessage("drydock"), pausing, func(s *api.Status) { s.NextAttemptAt = nil }, "asks for a slot now"},
		"leave":              {leaveMessage("drydock", "net"), shared, func(s *api.Status) { *s = ready }, "no longer"},
	} {
		before := c.before
		if c.message.TookEffect(&before, &before) {
			t.Errorf("%s: has its effect before anything happened", name)
		}
		now := after(c.change, c.before)
		if !c.message.TookEffect(&before, now) {
			t.Errorf("%s: its effect is not seen", name)
		}
		if said := c.message.Said(now); !strings.Contains(said, c.said) {
			t.Errorf("%s: said %q, want %q in it", name, said, c.said)
		}
	}
}

func TestReleaseIsNotTakenForRequestorFailed(t *testing.T) {
	before, now := startertest.View(api.Ready).Status, startertest.View(api.RequestorFailed).Status
	if CancelMessage("drydock", true, false).TookEffect(before, now) {
		t.Error("cancel --release has its effect though the node was not released")
	}
}

func TestPayloadsNameTheRun(t *testing.T) {
	who := api.Message{By: "jane@host", Comment: "c"}
	seen := startertest.View(api.Draining, blockedBy("a/db-0"), took(spec.Notify, "")).Status
	seen.Spec.Drain.Escalation = []spec.Rung{{Do: spec.Notify}, {Do: spec.BypassBudget}, {Do: spec.Kill}}
	for want, m := range map[string]invocation.Message{
		`{"by":"jane@host","comment":"c","requestor":"net","run":"run-1"}`:              DoneMessage("drydock", "net"),
		`{"by":"jane@host","comment":"c","requestor":"ops","run":"run-1","reason":"r"}`: FailedMessage("drydock", "ops", "r"),
		`{"by":"jane@host","comment":"c","run":"run-1"}`:                                retryMessage(),
		`{"by":"jane@host","comment":"c","release":true,"run":"run-1"}`:                 CancelMessage("drydock", true, false),
		`{"by":"jane@host","comment":"c","for":"1h0m0s","run":"run-1"}`:                 extendMessage(startertest.ClockAtNoon, time.Hour),
		`{"by":"jane@host","comment":"c","requestor":"net"}`:                            joinMessage("drydock", "net"),
		`{"by":"jane@host","comment":"c","expect":"bypassBudget","run":"run-1"}`:        escalateTo(""),
		`{"by":"jane@host","comment":"c","do":"kill","run":"run-1"}`:                    escalateTo(spec.Kill),
		`{"by":"jane@host","comment":"c","pod":"a/db-0","run":"run-1"}`:                 skipPodMessage("drydock", "db-0"),
		`{"by":"jane@host","comment":"c", "run":"run-1"}`:                               retryNowMessage("drydock"),
	} {
		got, err := json.Marshal(m.Payload(who, "run-1", seen))
		if err != nil || string(got) != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s: %s (%v), want %s", m.Name(), got, err, want)
		}
	}
	got, err := json.Marshal(extendMessage(startertest.ClockAtNoon, 0).Payload(who, "run-1", seen))
	if err != nil || strings.Contains(string(got), `"for"`) {
		t.Errorf("extend without a time: %s (%v); its absence means the ready timeout", got, err)
	}
}

func TestDangerousMessagesAreAskedAbout(t *testing.T) {
	plan := func(rungs ...string) client.View {
		return startertest.View(api.Draining, func(s *api.Status) {
			for _, do := range rungs {
				s.Spec.Drain.Escalation = append(s.Spec.Drain.Escalation, spec.Rung{Do: do})
			}
		})
	}
	refused := errors.New("no")
	for name, c := range map[string]struct {
		do            string
		before, after client.View
		answer        error
		asked, err    string
	}{
		"named":                        {spec.Kill, plan(), plan(), nil, "worker-01: kill deletes the pods without their grace period", ""},
		"named, refused":               {spec.Fail, plan(), plan(), refused, "worker-01: fail gives up", "no"},
		"harmless":                     {spec.GiveBack, plan(), plan(), refused, "", ""},
		"the next one":                 {"", plan(spec.BypassBudget), plan(spec.BypassBudget), nil, "bypassBudget deletes", ""},
		"the next one, harmless":       {"", plan(spec.Notify, spec.Kill), plan(), refused, "", ""},
		"another one meanwhile":        {"", plan(spec.BypassBudget), plan(spec.Kill), nil, "bypassBudget", "worker-01 has moved on meanwhile"},
		"harmless by now":              {"", plan(spec.BypassBudget), plan(spec.Notify), nil, "bypassBudget", "worker-01 has moved on meanwhile"},
		"no longer possible meanwhile": {spec.Kill, plan(), startertest.View(api.Ready), nil, "kill", "worker-01 is Ready"},
	} {
		asked := ""
		m := escalateMessage("drydock", startertest.ClockAtNoon, c.do, func(question string) error {
			asked = question
			return c.answer
		})
		_, _, err := m.Agreed(c.before, func() (client.View, string, error) {
			already, err := m.Judge(c.after.Status)
			return c.after, already, err
		})
		if !strings.Contains(asked, c.asked) || c.asked == "" && asked != "" {
			t.Errorf("%s: asked %q, want %q", name, asked, c.asked)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error = %v, want %q", name, err, c.err)
		}
	}
}

func TestTheSLAsRungIsNotTakenByHand(t *testing.T) {
	s := startertest.View(api.Draining, func(s *api.Status) {
		s.Spec.SLA = &spec.SLA{After: spec.Duration(30 * time.Minute)}
		s.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
	}).Status
	if next, _ := client.NextRung(s); next.Do != spec.ExpireSLA {
		t.Errorf("next is %+v", next)
	}
	if rung, left := client.RungToTake(s); !left || rung.Do != spec.GiveBack {
		t.Errorf("escalate takes %+v", rung)
	}
}

func TestNextRung(t *testing.T) {
	plan := func(taken ...func(*api.Status)) *api.Status {
		return startertest.View(api.Draining, append(taken, func(s *api.Status) {
			s.CordonedAt = startertest.Ago(48 * time.Minute)
			for i, do := range []string{spec.Notify, spec.BypassBudget, spec.GiveBack} {
				s.Spec.Drain.Escalation = append(s.Spec.Drain.Escalation, spec.Rung{After: spec.Duration(time.Duration(i+2) * 20 * time.Minute), Do: do})
			}
		})...).Status
	}
	afterPods := plan()
	afterPods.Spec.WaitForPodCompletion, afterPods.Since = &spec.WaitForPods{}, startertest.Before(time.Minute)
	pending := plan()
	pending.Phase = api.Pending
	for name, c := range map[string]struct {
		status *api.Status
		want   string
	}{
		"the first, overdue":        {plan(), "due now: notify"},
		"after one whose time came": {plan(took(spec.Notify, "")), "in 12m: bypassBudget"},
		"after one by hand":         {plan(tookNext(spec.Notify, "me")), "in 12m: bypassBudget"},
		"after one out of order":    {plan(took(spec.Notify, ""), took(spec.GiveBack, "me")), "in 12m: bypassBudget"},
		"after an unplanned one":    {plan(took(spec.Kill, "me"), took(spec.Notify, "")), "in 12m: bypassBudget"},
		"after a named one":         {plan(took(spec.Notify, "me")), "due now: notify"},
		"none left":                 {plan(took(spec.Notify, ""), took(spec.BypassBudget, ""), took(spec.GiveBack, "")), ""},
		"counted from the drain":    {afterPods, "in 39m: notify"},
		"no drain":                  {pending, ""},
		"no plan":                   {startertest.View(api.Draining).Status, ""},
	} {
		if got := show.NextRungText(c.status, startertest.Noon); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
