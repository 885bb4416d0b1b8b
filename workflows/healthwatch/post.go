package healthwatch

import (
	"cmp"
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/api"
	"drydock/rules/number"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

// maxAtOnce bounds the activities under way that tell checks, maxNodes the nodes that one of them tells of.
const (
	maxAtOnce = 4
	maxNodes  = 1000
)

// post tells checks what concerns them, each one thing after the other.
type post struct {
	*core
	underWay int
	// nameless: this run came by reset, and its name is not known yet.
	nameless bool
}

// send tells the checks for which there is something, several at once.
func (p *post) send() {
	for p.underWay < maxAtOnce && !p.nameless {
		var in activity.TellInput
		var told []*check
		nodes := 0
		for _, k := range p.state.Checks {
			if nodes >= maxNodes || k.busy || k.Ghost {
				continue
			}
			if p.Now().Before(k.next) {
				p.WakeAt(k.next, "tell a check again")
				continue
			}
			news, some := p.next(k)
			if !some {
				continue
			}
			k.busy = true
			nodes += len(news.Nodes)
			told, in.News = append(told, k), append(in.News, activity.AddressedNews{Check: k.Intent.Name, News: news})
		}
		if len(told) == 0 {
			return
		}
		p.tell(told, in)
	}
}

// next is what a check is to be told now.
func (p *post) next(k *check) (api.HealthNews, bool) {
	news := api.HealthNews{RunID: k.Intent.RunID}
	if len(k.ended) > 0 {
		news.Ended, k.ended = k.ended, nil
		return news, true
	}
	if troubles := p.Troubles(); !slices.EqualFunc(troubles, k.Troubled, sameTrouble) {
		k.Troubled, news.Troubles = troubles, &troubles
		return news, true
	}
	k.Latest.Refused, k.Latest.Permit, k.Latest.PermitWhy = k.Refused, k.Permit, k.PermitWhy
	standing := standingOf(k)
	switch {
	case len(k.news) > 0:
		news.Observation = k.news[0]
		k.news = k.news[1:]
	case !k.Known.All || k.partial || k.Answered >= k.Intent.Revision && standing == k.Told:
		return news, false // it is not known yet how its nodes are, or it knows all
	default:
		news.Observation = k.Latest
		news.Revision = k.Intent.Revision
	}
	news.Refused, news.Permit, news.PermitWhy = k.Refused, k.Permit, k.PermitWhy
	k.Sequence++
	news.Sequence, news.Watch = k.Sequence, p.runID()
	k.Answered, k.Told = max(k.Answered, news.Revision), standing
	return news, true
}

// sameTrouble reports whether two troubles differ in no more than when they are tried again.
func sameTrouble(a, b api.Trouble) bool {
	return a.What == b.What && a.Why == b.Why && a.Since.Equal(b.Since)
}

// standingOf is what a check is to know beside its nodes.
func standingOf(k *check) string {
	text, _ := json.Marshal([]string{k.Refused, k.Permit, k.PermitWhy}) // texts
	return string(text)
}

// runID is the first run of the watch's chain, and after a reset the run that came by it: that one counts what it tells from 1, to
// checks of which the copied history knows nothing.
func (c *core) runID() string {
	if c.state.Run != "" {
		return c.state.Run
	}
	info := workflow.GetInfo(c.Ctx)
	return cmp.Or(info.FirstRunID, info.OriginalRunID, info.WorkflowExecution.RunID)
}

func (p *post) tell(told []*check, in activity.TellInput) {
	p.underWay++
	ctx := call.Within(call.Long(p.Ctx, "tell "+number.Of(len(told), "health check")), actWithin)
	p.Does("tell", workflow.ExecuteActivity(ctx, call.Health.TellChecks, in), func(f workflow.Future) {
		p.underWay--
		var result activity.ToldChecks
		err := f.Get(p.Ctx, &result)
		if err != nil {
			p.note("checks could not be told", call.Cause(err))
		}
		for _, k := range told {
			k.busy = false
			i := slices.IndexFunc(result.Missed, func(m activity.MissedCheck) bool { return m.Check == k.Intent.Name })
			if err == nil && i < 0 {
				k.failures = 0
				continue
			}
			if i >= 0 {
				p.note("check "+k.Intent.Name+" could not be told", result.Missed[i].Why)
			}
			k.next = p.Now().Add(loop.Backoff(k.failures))
			k.failures++
			k.anew() // whether it was told is not known
			p.changed()
		}
		for _, name := range result.Ended {
			if k := p.find(name); k != nil && slices.Contains(told, k) {
				p.gone(name)
			}
		}
	})
}
