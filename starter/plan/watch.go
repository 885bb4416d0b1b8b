package plan

import (
	"context"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

// askSlowestEvery is how often the slowest nodes are asked for what is in their way.
const askSlowestEvery = 5 * time.Second

// watch shows a plan until it has ended: as a picture in a terminal, in lines elsewhere.
func watch(ctx context.Context, a *invocation.App, c *invocation.Connection, p *client.Plan) error {
	picture := terminal.NewPicture(a.Stdout)
	if picture == nil {
		v, err := follow(ctx, c, p, terminal.NewDisplay(a.Stdout, c.Clock))
		if err != nil {
			return stopped(ctx, c, p, v, err)
		}
		return endOf(v)
	}
	var (
		last  client.PlanView
		slow  []api.SlowNode
		pace  *plan.Pace
		asked time.Time
	)
	notes := follower{display: terminal.NewNotes(a.Stderr, c.Clock), clock: c.Clock}
	err := p.Watch(ctx, api.PlanStatusRequest{Cells: true}, func(v client.PlanView, err error) bool {
		if notes.answered(c, err); err != nil {
			return false
		}
		last = v
		if now := c.Clock(); now.Sub(asked) > askSlowestEvery || !v.Running() {
			slow, asked = slowest(ctx, c, p, v), now
			if latest := p.Pace(ctx, v); latest != nil || !v.Running() { // of one that has ended no end is expected
				pace = latest
			}
		}
		shown, cells := v.Known(), ""
		shown.Slowest, shown.Pace = slow, pace
		if v.Status != nil {
			cells = v.Status.Cells
		}
		picture.Draw(func(page *terminal.Page, height int) { show.PlanPicture(page, shown, cells, height, c.Clock()) })
		return !v.Running()
	})
	if err != nil {
		return stopped(ctx, c, p, last, err)
	}
	return endOf(last)
}
