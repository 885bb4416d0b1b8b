package client

import (
	"fmt"
	"slices"
	"strings"

	temporalclient "go.temporal.io/sdk/client"
)

// cronOf is the cron expression that means the same as a calendar of a Schedule; empty where there is none.
func cronOf(c temporalclient.ScheduleCalendarSpec) string {
	atZero := []temporalclient.ScheduleRange{{}}
	seconds := rangesText(c.Second, atZero, 0, 59)
	text := []string{
		rangesText(c.Minute, atZero, 0, 59), rangesText(c.Hour, atZero, 0, 23), rangesText(c.DayOfMonth, nil, 1, 31),
		rangesText(c.Month, nil, 1, 12), rangesText(c.DayOfWeek, nil, 0, 6),
	}
	// Of days of the month and of the week cron takes either, and a calendar both.
	if seconds != "0" || len(c.Year) > 0 || text[2] != "*" && text[4] != "*" {
		return ""
	}
	return strings.Join(text, " ")
}

// rangesText is a field of a cron expression whose values are from least to most; missing stands for no ranges, and nil for all.
func rangesText(ranges, missing []temporalclient.ScheduleRange, least, most int) string {
	if len(ranges) == 0 {
		ranges = missing
	}
	var texts []string
	for _, r := range ranges {
		end, step := max(r.Start, r.End), max(r.Step, 1)
		text := fmt.Sprintf("%d-%d", r.Start, end)
		switch {
		case r.Start == least && end == most:
			text = "*"
		case r.Start == end:
			text, step = fmt.Sprint(r.Start), 1
		}
		if step > 1 {
			text += fmt.Sprintf("/%d", step)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 || slices.Contains(texts, "*") {
		return "*"
	}
	return strings.Join(texts, ",")
}
