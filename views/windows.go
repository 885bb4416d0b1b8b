package views

import (
	"cmp"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/window"
)

// Windows has a line for each opening of each window.
func Windows(all api.Windows, r Reader) (d document.Document) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return r.at(t)
	}
	t := document.Table{
		Header: []string{"window", "timezone", "open", "from", "until", "used by"}, None: "The worker's configuration has no windows.",
	}
	for _, one := range all.Windows {
		open, first := yesNo(one.Open), window.Opening{}
		if one.Missing {
			open = "not configured"
		}
		if len(one.Openings) > 0 {
			first = one.Openings[0]
		}
		t.Add(one.Name, cmp.Or(one.Timezone, "-"), open, at(first.From), at(first.Until), usedBy(one))
		for _, o := range one.Openings[min(1, len(one.Openings)):] {
			t.Add("", "", "", at(o.From), at(o.Until), "")
		}
	}
	d.Table(t)
	return d
}

func usedBy(w api.Window) string {
	var users []string
	if w.Cluster {
		users = append(users, "cluster")
	}
	for _, group := range w.Groups {
		users = append(users, "group "+group)
	}
	return cmp.Or(strings.Join(users, ", "), "-")
}

// WindowsDiffer says that the scheduler goes by other windows than those that a worker has; empty if it does not.
func WindowsDiffer(horizon window.Horizon, known *api.WindowsKnown, r Reader) string {
	if known == nil || known.Digest == horizon.Digest {
		return ""
	}
	text := "these are the windows of the worker that answered, and the scheduler goes by others"
	if !known.Since.IsZero() {
		text += ": those of a worker that was started at " + r.at(known.Since)
	}
	return text + "; give all workers one configuration"
}
