package migration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/rules/window"
)

// weekdays are the days as Drydock's windows name them, from Sunday on.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// hours are the days and times of kured, which system-upgrade-controller has too (kured's package timewindow, v1.23).
type hours struct {
	days             []string
	start, end, zone string
}

// window is the same as a window of Drydock's, nil if it is always open. Note says what is otherwise, empty if nothing is.
func (h hours) window() (w *window.Window, note string, err error) {
	w = &window.Window{Timezone: h.zone}
	for _, day := range h.days {
		name, err := weekday(day)
		if err != nil {
			return nil, "", err
		}
		if name != "" && !slices.Contains(w.Days, name) {
			w.Days = append(w.Days, name)
		}
	}
	from, err := clock(h.start, "0:00")
	if err != nil {
		return nil, "", err
	}
	to, err := clock(h.end, "23:59:59")
	if err != nil {
		return nil, "", err
	}
	w.From, w.To = from.Format("15:04"), to.Format("15:04")
	if from.Second() > 0 {
		w.From = from.Add(time.Minute).Format("15:04")
	}
	if to.Second() > 0 {
		w.To = to.Add(time.Minute).Format("15:04")
	}
	if w.To == "00:00" || w.To == "23:59" {
		w.To = "24:00" // there an end is in the window
	}
	if len(w.Days) == len(weekdays) {
		w.Days = nil
	}
	if w.From == "00:00" && w.To == "24:00" && len(w.Days) == 0 {
		return nil, "", nil
	}
	if from.After(to) && len(w.Days) > 0 {
		note = "an opening over midnight is that of the day on which it begins; there the hours after midnight are those of the named day"
	}
	_, err = w.Compile()
	return w, note, err
}

// weekday is a day of the week as windows name it: it is given as a number from 0 (Sunday), or by its name, of which two letters do.
func weekday(given string) (string, error) {
	if given == "" {
		return "", nil
	}
	if n, err := strconv.Atoi(given); err == nil && n >= 0 && n < len(weekdays) {
		return weekdays[n], nil
	}
	for _, name := range weekdays {
		if len(given) >= 2 && strings.HasPrefix(strings.ToLower(given), name[:2]) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%.20q is no day of the week", given)
}

func clock(given, otherwise string) (time.Time, error) {
	if given == "" {
		given = otherwise
	}
	for _, layout := range []string{"15:04", "15:04:05", "03:04pm", "15", "03pm", "3pm"} {
		if t, err := time.Parse(layout, given); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.20q is no time of day", given)
}
