package health

import (
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
)

// maxEvents is how many events of a reason are announced at once; the rest is counted.
const maxEvents = 20

// events are those of one decision.
type events struct {
	list  []Event
	count map[string]int
	order []string
}

func (e *events) add(one Event) {
	if e.count == nil {
		e.count = map[string]int{}
	}
	if e.count[one.Reason] == 0 {
		e.order = append(e.order, one.Reason)
	}
	if e.count[one.Reason]++; e.count[one.Reason] <= maxEvents {
		one.Text = bounds.Cut(one.Text, bounds.Text)
		e.list = append(e.list, one)
	}
}

// all are the events, with one for each reason of which there are more.
func (e *events) all() []Event {
	for _, reason := range e.order {
		if more := e.count[reason] - maxEvents; more > 0 {
			e.list = append(e.list, Event{Reason: reason, Text: "the same goes for " + number.Of(more, "further node")})
		}
	}
	return e.list
}
