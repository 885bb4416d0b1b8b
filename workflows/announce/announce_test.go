package announce_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/announce"
	"drydock.dev/drydock/workflows/controller"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// sender is the state of a controller.
type sender struct {
	controller.Base
	announce.Outbox
}

func channel(name string) notices.Channel {
	return notices.Channel{Name: name, RetryFor: period.Duration(5 * time.Minute)}
}

func (s *sender) announce(n int, to ...notices.Channel) {
	for i := range n {
		s.Announce(&s.Base, to, notices.Event{ID: fmt.Sprint("e", i), State: notices.NodeUnhealthy, At: now, Sequence: i}, now)
	}
}

// show names the messages with what they have.
func show(all []controller.Watch) string {
	var words []string
	for _, w := range all {
		in := w.Input.(delivery.DeliverInput)
		words = append(words, fmt.Sprintf("%s: %d for %s", w.Key.Of, len(in.Events), in.Until.Sub(now)))
	}
	return strings.Join(words, ", ")
}

func TestAMessageStaysAsItIsUntilItsOutcomeIsKnown(t *testing.T) {
	var s sender
	s.announce(1, channel("a"), channel("b"))
	if got := show(s.Deliver(now)); got != "a/e0: 1 for 5m0s, b/e0: 1 for 5m0s" {
		t.Error(got)
	}
	s.Announce(&s.Base, []notices.Channel{channel("a")}, notices.Event{ID: "later"}, now)
	packed, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	s = sender{}
	if err := json.Unmarshal(packed, &s); err != nil {
		t.Fatal(err)
	}
	all := s.Deliver(now.Add(4*time.Minute + 30*time.Second)) // of the next run
	if got := show(all); got != "a/e0: 1 for 5m30s, b/e0: 1 for 5m30s" {
		t.Error(got)
	}
	for _, w := range all {
		s.Delivery(&s.Base, controller.Came(w, notify.Receipt{}), now)
	}
	if got := show(s.Deliver(now)); got != "a/later: 1 for 5m0s" || len(s.Notes) != 0 || s.Delivered() {
		t.Error(got, s.Notes)
	}
}

func TestAChannelIsSentOneMessageAfterTheOther(t *testing.T) {
	var s sender
	s.announce(120, channel("a"))
	var sent []string
	for range 10 {
		for _, w := range s.Deliver(now) {
			sent = append(sent, show([]controller.Watch{w}))
			s.Delivery(&s.Base, controller.Came(w, notify.Receipt{}), now)
		}
	}
	if want := []string{"a/e0: 50 for 5m0s", "a/e50: 50 for 5m0s", "a/e100: 20 for 5m0s"}; !slices.Equal(sent, want) || !s.Delivered() {
		t.Errorf("%q", sent)
	}
}

func TestWhatAChannelDoesNotTakeIsDroppedAndNoted(t *testing.T) {
	var s sender
	s.announce(2, channel("a"))
	s.Delivery(&s.Base, controller.Came(s.Deliver(now)[0], errors.New("nobody is there")), now)
	if len(s.Notes) != 1 || s.Notes[0].What != "channel a was not told of 2 events" || s.Notes[0].Why != "nobody is there" || len(s.Troubles()) != 0 {
		t.Errorf("%+v, %+v", s.Notes, s.Troubles())
	}
	if !s.Delivered() {
		t.Error("it is still sent")
	}
}

func TestTheOldestOfTooManyEventsIsDroppedUnlessItIsBeingSent(t *testing.T) {
	var s sender
	s.announce(10, channel("a"))
	first := s.Deliver(now)
	s.announce(1000, channel("a"))
	if got := show(s.Deliver(now)); got != "a/e0: 10 for 5m0s" || len(s.Notes) != 1 {
		t.Error(got, s.Notes)
	}
	s.Delivery(&s.Base, controller.Came(first[0], notify.Receipt{}), now)
	if got := show(s.Deliver(now)); got != "a/e10: 50 for 5m0s" {
		t.Error(got)
	}
}

func TestAChannelIsSentWhatItWants(t *testing.T) {
	var s sender
	deaf := channel("deaf")
	deaf.Filter.Events = []notices.State{notices.HealthStorm}
	s.announce(1, deaf, channel("a"))
	if got := show(s.Deliver(now)); got != "a/e0: 1 for 5m0s" {
		t.Error(got)
	}
}
