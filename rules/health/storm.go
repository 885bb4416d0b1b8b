package health

import (
	"fmt"
	"time"
)

// storm follows whether too many nodes are unhealthy, and since when they are not any more.
func (d *deciding) storm() {
	storm := &d.state.Storm
	if d.spec.StormCooldownDuration == nil {
		*storm = Storm{}
		return
	}
	all := d.tally("")
	active, cooling := !storm.ActiveSince.IsZero(), !storm.CooldownSince.IsZero()
	switch {
	case all.counted && all.healthy >= all.nodes:
		if active {
			d.stormEnds("all nodes are healthy")
		}
	case all.violated():
		if cooling || !active && d.anyIll() {
			d.events.add(Event{Reason: EventStormStarted, Text: d.tooFew(all, ""), Warning: true})
		}
		if cooling {
			storm.CooldownSince, storm.CooldownAt = time.Time{}, d.now
		}
		if !active && d.anyIll() {
			storm.ActiveSince, storm.CooldownAt = d.now, d.now
		}
	case !active:
	case !cooling:
		storm.CooldownSince, storm.CooldownAt = d.now, d.now
		d.wake(d.stormOver())
		d.events.add(Event{Reason: EventStormCooldownStarted, Warning: true, Text: fmt.Sprintf("enough nodes are healthy again: %d of %d; nothing begins for %s",
			all.healthy, all.nodes, long(*d.spec.StormCooldownDuration))})
	case d.now.Before(d.stormOver()):
		d.wake(d.stormOver())
	default:
		d.stormEnds("enough nodes have been healthy for " + long(*d.spec.StormCooldownDuration))
	}
}

func (d *deciding) stormEnds(why string) {
	d.state.Storm = Storm{EndedAt: d.now, CooldownAt: d.now}
	d.events.add(Event{Reason: EventStormEnded, Text: why})
}
