package profile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// The kind of the watches that send notifications, and that of the effects that end maintenances.
const (
	sendNotice     = "send"
	endMaintenance = "end"
)

const (
	// maxSending bounds the notifications that are being sent, sendAtOnce those that one evaluation begins.
	maxSending = 500
	sendAtOnce = 100
	// sendWithin is how long a notification is tried.
	sendWithin = 24 * time.Hour
	// sendAtLeast is how long it is tried in a run that has it from the run before.
	sendAtLeast = time.Minute
	// sendPause is the longest pause between two tries.
	sendPause = 10 * time.Minute
	// leaveWithin bounds the word to a maintenance.
	leaveWithin = time.Minute
)

func (p *profiles) noticeRoom() int { return min(max(maxSending-len(p.Sending), 0), sendAtOnce) }

// send has a notification sent. Where one of its kind about the node is being sent already, it follows that one.
func (p *profiles) send(n activity.Notice) {
	var same []int
	for i, other := range p.Sending {
		if other.Key() != n.Key() {
			continue
		}
		if !other.At.Before(n.At) {
			return
		}
		same = append(same, i)
	}
	switch {
	case len(same) > 1: // the first may be on its way already
		p.Sending[same[1]] = n
	case len(same) > 0 || len(p.Sending) < maxSending:
		p.Sending = append(p.Sending, n)
	}
}

// deliveries send the notifications, each for as long as it takes: a run does not wait for them, and the next sends them again under the
// same keys. They are watches for that.
func (p *profiles) deliveries(now time.Time) (all []controller.Watch) {
	busy := map[[3]string]bool{}
	for _, n := range p.Sending {
		if busy[n.Key()] {
			continue
		}
		busy[n.Key()] = true
		all = append(all, controller.Watch{
			Key:     controller.Key{Kind: sendNotice, Of: strings.Join([]string{n.Node, n.Profile, n.Instance, strconv.FormatInt(n.At.UnixNano(), 10)}, "/")},
			Summary: "send " + n.Instance + " about " + n.Node, Input: n, Want: n.At,
			Call: controller.Call{
				Func: call.Profiles.SendProfileNotice, Within: max(n.At.Add(sendWithin).Sub(now), sendAtLeast), Pause: sendPause,
				Lane: api.LaneMessages,
			},
		})
	}
	return all
}

func (p *profiles) sent(o controller.Outcome, now time.Time) {
	n := o.Begun.(controller.Watch).Input.(activity.Notice)
	var sent activity.Sent
	if err := o.Get(&sent); err != nil {
		sent.Failed = call.Cause(err)
		p.ClearBackoff(o.Key) // it is given up
	}
	if sent.Failed != "" {
		p.Warn(now, "notification "+n.Instance+" about "+n.Node+" was not sent", sent.Failed)
	}
	p.Sending = slices.DeleteFunc(p.Sending, func(other activity.Notice) bool { return other.Key() == n.Key() && other.At.Equal(n.At) })
	p.Changes++
}

// leave has a maintenance end whose profile has left its state. One that is to be given back after all is told so.
func (p *profiles) leave(left activity.Left) {
	p.Leaving = slices.DeleteFunc(p.Leaving, func(l leaving) bool { return l.Is(left) && l.Left != left })
	if !slices.ContainsFunc(p.Leaving, func(l leaving) bool { return l.Left == left }) {
		p.Leaving = append(p.Leaving, leaving{Left: left})
	}
}

func (p *profiles) endMaintenances() (all []controller.Effect) {
	for _, l := range p.Leaving {
		if !l.Requested {
			all = append(all, controller.Activity{
				Meta: controller.Meta{
					Key:     controller.Key{Kind: endMaintenance, Of: l.Node + "/" + l.Requestor + "/" + l.RunID},
					Summary: "end the maintenance of " + l.Node,
				},
				Call:  controller.Call{Func: call.Profiles.EndProfileMaintenance, Within: leaveWithin},
				Input: activity.EndMaintenanceInput{Left: l.Left, Why: "the profile is not in the state any more for which this was begun"},
			})
		}
	}
	return all
}

// maintenanceEnds takes whether the end of a maintenance was requested. Where it was not, the evaluation decides anew.
func (p *profiles) maintenanceEnds(o controller.Outcome, now time.Time) {
	left := o.Begun.(controller.Activity).Input.(activity.EndMaintenanceInput).Left
	if o.Err != nil {
		p.fails(o.Key, "the maintenance of "+left.Node+" could not be ended", o.Err, now)
		p.forgetMaintenances([]activity.Left{left})
		p.Changes++
		return
	}
	for i := range p.Leaving {
		if p.Leaving[i].Left == left {
			p.Leaving[i].Requested = true
		}
	}
}

func (p *profiles) forgetMaintenances(all []activity.Left) {
	p.Leaving = slices.DeleteFunc(p.Leaving, func(l leaving) bool { return slices.Contains(all, l.Left) })
}
