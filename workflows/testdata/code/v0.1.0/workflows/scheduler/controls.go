package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"encoding/json"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"slices"
	"strings"
	"time"
)

// maxName and maxWords are in bytes: what people say is shown by everything that waits for them.
const (
	maxName  = 253
	maxWords = 1000
	// maxFreezes and maxLimits (bytes) bound what people decide, which every run carries on.
	maxFreezes = 50
	maxLimits  = 64 << 10
)

// controls are what operators set: the limits, and the freezes.
type controls struct {
	limits api.LimitsInForce
	// revision counts changes of the limits.
	revision int
	freezes  []schedule.Freeze
	// freezeRevision grows with every change of the freezes.
	freezeRevision int
}

// checkLimits refuses limits that cannot be. The revision is not known before the rebuild; it is asked again when that
// is over.
func (c *controls) checkLimits(p api.SetLimits, rebuilt bool) error {
	if p.By == "" {
		return errors.New("by: say who sets the limits")
	}
	if err := errors.Join(short("by", p.By, maxName), short("comment", p.Comment, maxWords)); err != nil {
		return err
	}
	if p.IfRevision != nil && rebuilt && *p.IfRevision != c.revision {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("ifRevision: the limits are at revision %d, set by %s, and no longer at %d", c.revision, c.limits.SetBy, *p.IfRevision),
			api.ErrorLimitsChanged, nil)
	}
	return fitting(p.Limits)
}

// fitting refuses limits that cannot be, or that are too long to be carried.
func fitting(l schedule.Limits) error {
	if size := len(asJSON(l)); size > maxLimits {
		return fmt.Errorf("limits: %d bytes are more than %d", size, maxLimits)
	}
	return l.WithDefaults().Validate()
}

// setLimits returns what that changes, in words.
func (c *controls) setLimits(p api.SetLimits, now time.Time) string {
	before := c.limits.Limits
	c.limits = api.LimitsInForce{Limits: p.Limits.WithDefaults(), SetBy: p.By, Comment: p.Comment, SetAt: now}
	c.revision++
	return fmt.Sprintf("limits changed from %s to %s", asJSON(before), asJSON(c.limits.Limits))
}

func (c *controls) checkFreeze(p api.FreezeRequest) error {
	if p.By == "" {
		return errors.New("by: say who freezes; the same name thaws")
	}
	known := slices.ContainsFunc(c.freezes, func(f schedule.Freeze) bool { return f.By == p.By })
	if len(c.freezes) >= maxFreezes && !known {
		return fmt.Errorf("by: there are %d freezes already; thaw one first", len(c.freezes))
	}
	return errors.Join(short("by", p.By, maxName), short("reason", p.Reason, maxWords))
}

// freeze is keyed by who asked: a second freeze of the same person replaces the first. It returns what that does, in
// words.
func (c *controls) freeze(p api.FreezeRequest, now time.Time) string {
	c.freezesChange(now)
	c.freezes = slices.DeleteFunc(c.freezes, func(f schedule.Freeze) bool { return f.By == p.By })
	c.freezes = append(c.freezes, schedule.Freeze{By: p.By, Reason: p.Reason, At: now, Running: p.Running})
	if p.Running {
		return "grants and running maintenances frozen"
	}
	return "grants frozen"
}

func (c *controls) checkThaw(p api.ThawRequest, rebuilt bool) error {
	if p.By == "" {
		return errors.New("by: say who thaws")
	}
	if err := errors.Join(short("by", p.By, maxName), short("comment", p.Comment, maxWords)); err != nil {
		return err
	}
	if p.All || !rebuilt || slices.ContainsFunc(c.freezes, func(f schedule.Freeze) bool { return f.By == p.By }) {
		return nil
	}
	var by []string
	for _, f := range c.freezes {
		by = append(by, f.By)
	}
	if len(by) == 0 {
		return errors.New("nothing is frozen")
	}
	return fmt.Errorf("there is no freeze by %s; frozen by %s (use all to lift every freeze)", p.By, strings.Join(by, ", "))
}

func (c *controls) thaw(p api.ThawRequest, now time.Time) {
	c.freezesChange(now)
	c.freezes = slices.DeleteFunc(c.freezes, func(f schedule.Freeze) bool { return p.All || f.By == p.By })
}

// freezesChange makes the revision larger than any that was ever told: also by a scheduler of which nothing is left, or by
// this one before it was reset.
func (c *controls) freezesChange(now time.Time) {
	c.freezeRevision = max(c.freezeRevision+1, int(now.UnixMilli()))
}

// notice is what holders are told of freezes.
func (c *controls) notice() api.FreezeNotice {
	return api.FreezeNotice{Revision: c.freezeRevision, Reasons: c.holdReasons()}
}

// holdReasons are the freezes that hold running maintenances too.
func (c *controls) holdReasons() []string {
	var reasons []string
	for _, f := range c.freezes {
		if f.Running {
			reasons = append(reasons, strings.TrimSuffix("frozen by "+f.By+": "+f.Reason, ": "))
		}
	}
	return reasons
}

func short(field, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%s: %d bytes are more than %d", field, len(text), most)
	}
	return nil
}

func asJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
