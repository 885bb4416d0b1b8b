package notices

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/spec"
)

// DefaultRetryFor is how long a failed delivery is tried again where a channel does not say.
const DefaultRetryFor = spec.Duration(24 * time.Hour)

// What the messages of a channel are answers to.
const (
	// ThreadNone makes every message one by itself, ThreadMaintenance joins those of one maintenance, ThreadPeriod
	// those of a length of time.
	ThreadNone        = ""
	ThreadMaintenance = "maintenance"
	ThreadPeriod      = "period"
)

// Channel is what a workflow has to know of a channel. It holds no secret.
type Channel struct {
	Name     string   `json:"channel"`
	Filter   Filter   `json:"filter,omitzero"`
	Schedule Schedule `json:"schedule,omitzero"`
	// Digest is for how long events of many maintenances are collected into one message; 0 sends each by itself.
	Digest spec.Duration `json:"digest,omitempty"`
	// Thread is ThreadNone, ThreadMaintenance or ThreadPeriod; ThreadPeriod begins a new thread every ThreadPeriod.
	Thread       string        `json:"thread,omitempty"`
	ThreadPeriod spec.Duration `json:"threadPeriod,omitempty"`
	// RetryFor is how long a failed delivery is tried again.
	RetryFor spec.Duration `json:"retryFor"`
}

// Collects reports whether a message of the channel may be about many maintenances.
func (p Channel) Collects() bool { return p.Digest > 0 || p.Thread == ThreadPeriod }

// Next returns when an event of the channel is sent next, as Schedule.Next does; an event whose state does not last
// is sent once.
func (p Channel) Next(e Event, last, now time.Time) (at time.Time, ok bool) {
	if !last.IsZero() && !Lasts(e.State) {
		return time.Time{}, false
	}
	return p.Schedule.Next(e.At, last, now)
}

// Validate joins one error per wrong field, which begins with the field.
func (p Channel) Validate() error {
	problems := append(under("filter", p.Filter.Validate()), under("schedule", p.Schedule.Validate())...)
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch {
	case p.Thread != ThreadNone && p.Thread != ThreadMaintenance && p.Thread != ThreadPeriod:
		wrong("thread: %q is not one of %s, %s", p.Thread, ThreadMaintenance, ThreadPeriod)
	case p.Thread == ThreadPeriod && p.ThreadPeriod <= 0:
		wrong("threadPeriod: is missing: say how long one thread is used, like \"24h\"")
	case p.Thread != ThreadPeriod && p.ThreadPeriod != 0:
		wrong("threadPeriod: %s has no meaning without thread: %s", p.ThreadPeriod, ThreadPeriod)
	case p.Thread == ThreadMaintenance && p.Digest != 0:
		wrong("thread: a digest is of many maintenances: want %s, or no digest", ThreadPeriod)
	}
	if p.Digest != 0 && p.Schedule != (Schedule{}) {
		wrong("schedule: has no meaning beside digest, which tells each event once; keep one of them")
	}
	if p.Digest < 0 {
		wrong("digest: %s is negative", p.Digest)
	}
	if p.RetryFor < 0 {
		wrong("retryFor: %s is negative", p.RetryFor)
	}
	return errors.Join(problems...)
}

// under puts a section's name in front of every line of its error.
func under(section string, err error) []error {
	if err == nil {
		return nil
	}
	var problems []error
	for line := range strings.Lines(err.Error()) {
		problems = append(problems, errors.New(section+"."+strings.TrimSuffix(line, "\n")))
	}
	return problems
}
