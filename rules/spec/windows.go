package spec

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/window"
)

// IgnoreWindows lets a maintenance go at any time.
type IgnoreWindows struct {
	// Reason is why the maintenance goes at any time.
	Reason string `json:"reason" jsonschema:"required,minLength=1,maxLength=1024" jsonschema_extras:"x-flag=ignore-windows"`
}

// WindowsIgnored is the reason why the maintenance ignores all windows; empty if they count.
func (m Maintenance) WindowsIgnored() string {
	if m.IgnoreWindows == nil {
		return ""
	}
	return m.IgnoreWindows.Reason
}

// WindowName checks the name of a window.
func WindowName(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%.80q is not the name of a window: %s", name, wrong[0])
	}
	return nil
}

// WindowNames checks a list of windows' names; the error has one line per wrong name, which begins with the field.
func WindowNames(field string, names []string) error {
	if len(names) > window.MaxNames {
		return fmt.Errorf("%s: has %d names: at most %d are taken", field, len(names), window.MaxNames)
	}
	var problems []error
	for i, name := range names {
		if err := WindowName(name); err != nil {
			problems = append(problems, fmt.Errorf("%s[%d]: %w", field, i, err))
		} else if slices.Contains(names[:i], name) {
			problems = append(problems, fmt.Errorf("%s[%d]: %q is named twice", field, i, name))
		}
	}
	return errors.Join(problems...)
}

// ExpectedDuration checks how long a maintenance says that it takes.
func ExpectedDuration(d Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("%s is negative", d)
	case d.Std() > window.MaxExpected:
		return fmt.Errorf("%s is longer than openings are looked ahead for: want %s at most", d, Duration(window.MaxExpected))
	case d > 0 && d.Std() < time.Second:
		return fmt.Errorf("%s is too short: want 1s or more", d)
	}
	return nil
}

func (m Maintenance) validateWindows(p *problems) {
	if err := WindowNames("windows", m.Windows); err != nil {
		*p = append(*p, err)
	}
	p.check("expectedDuration", ExpectedDuration(m.ExpectedDuration))
	if m.IgnoreWindows != nil {
		if m.IgnoreWindows.Reason == "" {
			p.add("ignoreWindows.reason", "required: it says why the maintenance does not wait for its windows")
		}
		p.text("ignoreWindows.reason", m.IgnoreWindows.Reason)
	}
}
