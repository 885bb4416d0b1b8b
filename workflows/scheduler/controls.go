package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// maxName and maxText are in bytes: what people write is shown by everything that waits for them.
const (
	maxName = 253
	maxText = 1000
	// maxFreezes and maxLimits (bytes) bound what people decide, which every run carries on.
	maxFreezes = 50
	maxLimits  = 64 << 10
)

// controls are what operators set: the limits, and the freezes.
type controls struct{ *State }

// checkLimits is called again after a rebuild, before which the revision is not known.
func (c *controls) checkLimits(p api.SetLimits) error {
	if err := checkBy(p.By, "say who sets the limits", "comment", p.Comment); err != nil {
		return err
	}
	if p.IfRevision != nil && c.Rebuilt && *p.IfRevision != c.Revision {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("ifRevision: the limits are at revision %d, set by %s, and no longer at %d", c.Revision, c.Limits.SetBy, *p.IfRevision),
			api.ErrorLimitsChanged, nil)
	}
	return fitting(p.Limits)
}

// fitting refuses invalid limits, and those that are too long to be carried.
func fitting(l schedule.Limits) error {
	if size := len(asJSON(l)); size > maxLimits {
		return fmt.Errorf("limits: %d bytes are more than %d", size, maxLimits)
	}
	return l.WithDefaults().Validate()
}

// setLimits returns what it changes, in words.
func (c *controls) setLimits(p api.SetLimits, now time.Time) string {
	before := c.Limits.Limits
	c.Limits = api.LimitsInForce{Limits: p.Limits.WithDefaults(), SetBy: p.By, Comment: p.Comment, SetAt: now}
	c.Revision++
	return fmt.Sprintf("limits changed from %s to %s", asJSON(before), asJSON(c.Limits.Limits))
}

func (c *controls) checkFreeze(p api.FreezeRequest) error {
	if err := checkBy(p.By, "say who freezes; the same name thaws", "reason", p.Reason); err != nil {
		return err
	}
	known := slices.ContainsFunc(c.Freezes, func(f schedule.Freeze) bool { return f.By == p.By })
	if len(c.Freezes) >= maxFreezes && !known {
		return fmt.Errorf("by: there are %d freezes already; thaw one first", len(c.Freezes))
	}
	return nil
}

// freeze replaces an earlier freeze by the same person, and returns what it does, in words.
func (c *controls) freeze(p api.FreezeRequest, now time.Time) string {
	c.freezesChange(now)
	c.Freezes = slices.DeleteFunc(c.Freezes, func(f schedule.Freeze) bool { return f.By == p.By })
	c.Freezes = append(c.Freezes, schedule.Freeze{By: p.By, Reason: p.Reason, At: now, Running: p.Running})
	if p.Running {
		return "grants and running maintenances frozen"
	}
	return "grants frozen"
}

func (c *controls) checkThaw(p api.ThawRequest) error {
	if err := checkBy(p.By, "say who thaws", "comment", p.Comment); err != nil {
		return err
	}
	if p.All || !c.Rebuilt || slices.ContainsFunc(c.Freezes, func(f schedule.Freeze) bool { return f.By == p.By }) {
		return nil
	}
	var by []string
	for _, f := range c.Freezes {
		by = append(by, f.By)
	}
	if len(by) == 0 {
		return errors.New("nothing is frozen")
	}
	return fmt.Errorf("there is no freeze by %s; frozen by %s (use all to lift every freeze)", p.By, strings.Join(by, ", "))
}

func (c *controls) thaw(p api.ThawRequest, now time.Time) {
	c.freezesChange(now)
	c.Freezes = slices.DeleteFunc(c.Freezes, func(f schedule.Freeze) bool { return p.All || f.By == p.By })
}

// freezesChange makes the revision larger than any that was ever sent: also by a scheduler of which nothing is left, or by this one before
// it was reset.
func (c *controls) freezesChange(now time.Time) {
	c.FreezeRevision = max(c.FreezeRevision+1, int(now.UnixMilli()))
}

// notice lists the freezes that hold running maintenances too.
func (c *controls) notice() api.FreezeNotice {
	notice := api.FreezeNotice{Revision: c.FreezeRevision}
	for _, f := range c.Freezes {
		if f.Running {
			notice.Reasons = append(notice.Reasons, strings.TrimSuffix("frozen by "+f.By+": "+f.Reason, ": "))
		}
	}
	return notice
}

func checkBy(by, missing, field, text string) error {
	if by == "" {
		return errors.New("by: " + missing)
	}
	return errors.Join(short("by", by, maxName), short(field, text, maxText))
}

func short(field, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%s: %d bytes are more than %d", field, len(text), most)
	}
	return nil
}

func asJSON(value any) string {
	data, _ := json.Marshal(value) // each of them has a JSON
	return string(data)
}
