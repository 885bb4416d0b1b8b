package healthwatch

import (
	"encoding/json"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/api"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

const (
	// pace is the shortest time between two starts of the watch for the sake of what has changed a little.
	pace = time.Second
	// tellAgain is after how long a workflow that does not run is told of again, where somebody still counts on it.
	tellAgain = time.Minute
)

// lookout has one activity look at the nodes. It is begun anew when the checks change, with what they were told already.
type lookout struct {
	*core
	// at is what is looked at, began since when, and stop ends that; nil is none.
	at    string
	began time.Time
	stop  func()
	// stale: something is to be looked at anew, whether or not it reads the same.
	stale    bool
	failures int
	next     time.Time
}

// watches is what fails where the nodes cannot be watched, looks where what is around them cannot be looked at.
const (
	watches = "the nodes cannot be watched"
	looks   = "some of what health checks depend on cannot be looked at"
	// looksAgain is about when that is tried again.
	looksAgain = 20 * time.Second
)

// anew has the watch begin anew.
func (l *lookout) anew() { l.stale, l.Dirty = true, true }

// input is what is to be looked at, with what is known of it.
func (l *lookout) input() activity.WatchInput {
	in := activity.WatchInput{Overlaps: l.state.Overlaps.Digest, Denied: l.state.Denied}
	for _, k := range l.state.Checks {
		in.Checks = append(in.Checks, activity.WatchedCheck{Name: k.Intent.Name, RunID: k.Intent.RunID, Intent: k.Intent.Intent, Known: k.Known})
		for _, node := range k.Intent.WantPermit {
			if k.Intent.Etcd == nil {
				continue
			}
			asked := activity.AskedPermit{Check: k.Intent.Name, Node: node, Etcd: k.Intent.Etcd}
			if answer := l.answer(k.Intent.Name, node); answer != nil {
				asked.Last = &answer.Permitted
			}
			in.Permits = append(in.Permits, asked)
		}
	}
	l.state.Ended = slices.DeleteFunc(l.state.Ended, func(e ended) bool { return l.Now().Sub(e.At) >= tellAgain })
	for _, e := range l.state.Ended {
		in.Ended = append(in.Ended, e.WorkflowID)
	}
	return in
}

// answer is what etcd's budget said of a node; nil is nothing.
func (c *core) answer(check, node string) *activity.PermitSeen {
	i := slices.IndexFunc(c.state.Answers, func(p activity.PermitSeen) bool { return p.Check == check && p.Node == node })
	if i < 0 {
		return nil
	}
	return &c.state.Answers[i]
}

// keep has a watch running that looks at all that is wanted.
func (l *lookout) keep() {
	if len(l.state.Checks) == 0 {
		l.rest()
		return
	}
	if l.stop != nil && !l.stale {
		return
	}
	in := l.input()
	text := keyOf(in)
	if l.stop != nil && l.at == text {
		l.stale = false
		return
	}
	if l.Now().Before(l.next) {
		l.WakeAt(l.next, "watch again")
		return
	}
	if due := l.began.Add(pace); l.stop != nil && l.Now().Before(due) {
		l.WakeAt(due, "watch what the checks want by now")
		return
	}
	l.rest()
	l.start(in, text)
}

// keyOf is what makes a watch look at something else.
func keyOf(in activity.WatchInput) string {
	type key struct {
		Name, RunID string
		Intent      health.Intent
		All         bool
	}
	var keys []key
	for _, c := range in.Checks {
		intent := c.Intent
		intent.WantPermit, intent.HoldPermit = nil, nil
		keys = append(keys, key{c.Name, c.RunID, intent, c.Known.All})
	}
	var asked []activity.AskedPermit
	for _, p := range in.Permits {
		asked = append(asked, activity.AskedPermit{Check: p.Check, Node: p.Node, Etcd: p.Etcd})
	}
	text, _ := json.Marshal([]any{keys, asked}) // of texts and numbers
	return string(text)
}

// watched is what a watch was begun for.
type watched struct {
	intent api.HealthIntent
	all    bool
	age    int
}

func (l *lookout) start(in activity.WatchInput, text string) {
	begun := map[string]watched{}
	for _, k := range l.state.Checks {
		begun[k.Intent.Name] = watched{k.Intent, k.Known.All, k.age}
	}
	l.at, l.began, l.stale = text, l.Now(), false
	l.stop = l.Watches("watch", func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(call.Beating(ctx, "watch the nodes for health checks", activity.HeartbeatTimeout),
			call.Health.WatchHealth, in)
	}, func(f workflow.Future) {
		l.stop = nil
		var seen activity.WatchResult
		if err := f.Get(l.Ctx, &seen); err != nil {
			l.next = l.Now().Add(loop.Backoff(l.failures))
			l.fails(watches, err, l.next)
			l.failures++
			return
		}
		l.failures = 0
		l.Works(watches)
		l.saw(seen, begun)
	})
}

// rest ends the watch: the next one sees what it has seen.
func (l *lookout) rest() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// saw takes what was seen.
func (l *lookout) saw(seen activity.WatchResult, begun map[string]watched) {
	for _, one := range seen.Checks {
		k, as := l.find(one.Name), begun[one.Name]
		if k == nil || k.Intent.RunID != as.intent.RunID || k.age != as.age || len(one.Hashes) != len(one.Observation.Nodes) {
			continue // it is seen anew, as it is wanted by now
		}
		k.Known.Take(one)
		one.Observation.Revision = as.intent.Revision
		k.news = append(k.news, one.Observation)
		k.partial = one.Observation.More
		k.Latest = one.Observation
		k.Latest.Nodes, k.Latest.Full, k.Latest.More = nil, false, false
	}
	if seen.Denied != nil {
		if l.state.Denied = *seen.Denied; l.state.Denied == "" {
			l.Works(looks)
		} else {
			l.Fails(&l.state.Carried, looks, l.state.Denied, l.Now().Add(looksAgain))
		}
	}
	if seen.Overlaps != nil {
		l.state.Overlaps = *seen.Overlaps
	}
	for _, p := range seen.Permits {
		if known := l.answer(p.Check, p.Node); known != nil {
			*known = p
			continue
		}
		l.state.Answers = append(l.state.Answers, p)
	}
	for _, e := range seen.EndedRemediations {
		k := l.find(e.Check)
		if k == nil {
			continue
		}
		l.state.Ended = append(l.state.Ended, ended{api.RemediationID(l.cluster, e.Check, e.Node), l.Now()})
		if k.Ghost {
			l.exorcise(k, e.Node)
			continue
		}
		k.ended = append(k.ended, e.Node)
	}
	for _, name := range seen.EndedChecks {
		l.state.Ended = append(l.state.Ended, ended{api.HealthCheckID(l.cluster, name), l.Now()})
		if k := l.find(name); k != nil && k.Intent.RunID == begun[name].intent.RunID {
			l.gone(name)
		}
	}
}

// exorcise forgets a remediation of a check that does not run, and with the last one the check.
func (l *lookout) exorcise(k *check, node string) {
	without := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == node })
	}
	k.Intent.Remediating, k.Intent.HoldPermit = without(k.Intent.Remediating), without(k.Intent.HoldPermit)
	if len(k.Intent.HoldPermit) == 0 {
		l.drop(k.Intent.Name)
	}
}
