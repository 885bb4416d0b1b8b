package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Data is the content of the annotation. The names in JSON, and their order, are those of SAP's maintenance-controller, which
// reads it back.
type Data struct {
	Profiles map[string]Profile
	// Notifications are the times at which instances of notifications last sent something.
	Notifications map[string]time.Time
}

// Profile is the state of one profile. Previous is the state that it was in when it was last evaluated: where it is not
// Current, the present state has yet to be entered.
type Profile struct {
	Transition        time.Time
	Current, Previous State
}

// maxData bounds what is read, in bytes: Kubernetes takes no longer annotations.
const maxData = 256 << 10

// oldKeys are those of the annotation before v1.2 of maintenance-controller.
var oldKeys = []string{"LastTransition", "LastNotificationTimes", "ProfileStates", "PreviousStates"}

// Read reads the annotation's value. An empty one is that of a new node. What follows the first JSON value is ignored, as there.
func Read(annotation string) (Data, error) {
	d := Data{}.filled()
	if annotation == "" {
		return d, nil
	}
	if len(annotation) > maxData {
		return d, fmt.Errorf("annotation %s has %d bytes: at most %d are read", DataAnnotation, len(annotation), maxData)
	}
	var read struct {
		Profiles      map[string]*Profile
		Notifications map[string]time.Time
	}
	decoder := json.NewDecoder(strings.NewReader(annotation))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return d, broken(annotation, err)
	}
	for _, name := range slices.Sorted(maps.Keys(read.Profiles)) {
		p := read.Profiles[name]
		switch {
		case p == nil:
			return d, broken(annotation, fmt.Errorf("profile %q has no value", name))
		case !isWritable(p.Transition):
			return d, broken(annotation, fmt.Errorf("profile %q: Transition is in year %d", name, p.Transition.UTC().Year()))
		case !p.Current.Known():
			return d, broken(annotation, fmt.Errorf("profile %q: Current is %q, which is not a state", name, p.Current))
		}
		d.Profiles[name] = *p
	}
	for _, name := range slices.Sorted(maps.Keys(read.Notifications)) {
		if at := read.Notifications[name]; !isWritable(at) {
			return d, broken(annotation, fmt.Errorf("notification %q is in year %d", name, at.UTC().Year()))
		}
	}
	maps.Copy(d.Notifications, read.Notifications)
	return d, nil
}

// broken says why an annotation cannot be read, and what to do.
// isWritable reports whether JSON can say a time in UTC: an offset may lead out of the years that it has.
func isWritable(at time.Time) bool {
	year := at.UTC().Year()
	return year >= 0 && year <= 9999
}

func broken(annotation string, err error) error {
	next := "correct it, or remove it, after which all profiles of the node begin in operational"
	for _, key := range oldKeys {
		if strings.Contains(annotation, `"`+key+`"`) {
			next = "it has the form from before maintenance-controller v1.2: remove it"
		}
	}
	return fmt.Errorf("annotation %s cannot be read: %w: %s", DataAnnotation, err, next)
}

func (d Data) filled() Data {
	if d.Profiles == nil {
		d.Profiles = map[string]Profile{}
	}
	if d.Notifications == nil {
		d.Notifications = map[string]time.Time{}
	}
	return d
}

// Clone is a copy that shares nothing.
func (d Data) Clone() Data {
	return Data{Profiles: maps.Clone(d.Profiles), Notifications: maps.Clone(d.Notifications)}.filled()
}

// Write is the annotation's value.
func (d Data) Write() (string, error) {
	d = d.Clone()
	for name, p := range d.Profiles {
		p.Transition = p.Transition.UTC()
		d.Profiles[name] = p
	}
	for name, at := range d.Notifications {
		d.Notifications[name] = at.UTC()
	}
	text, err := json.Marshal(d)
	return string(text), err
}

// Equal reports whether two say the same.
func (d Data) Equal(other Data) bool {
	same := func(a, b Profile) bool {
		return a.Current == b.Current && a.Previous == b.Previous && a.Transition.Equal(b.Transition)
	}
	return maps.EqualFunc(d.Profiles, other.Profiles, same) &&
		maps.EqualFunc(d.Notifications, other.Notifications, time.Time.Equal)
}

// Attach is the data of a node with these profiles in its label: a known one that is new begins in operational, and what the
// label no longer names is forgotten. What it names and nobody knows is kept, and goes on once it is known again.
func (d Data) Attach(label []string, known func(string) bool, now time.Time) Data {
	next := d.Clone()
	maps.DeleteFunc(next.Profiles, func(name string, _ Profile) bool { return !slices.Contains(label, name) })
	for _, name := range label {
		if _, there := next.Profiles[name]; !there && known(name) {
			next.Profiles[name] = Profile{Transition: now.UTC(), Current: Operational, Previous: Operational}
		}
	}
	return next
}

// ErrMoved reports that a profile is not where a change to it was decided.
var ErrMoved = errors.New("the profile is no longer in the state in which this was decided")

// Move is the data after a transition, which is not done twice.
func (d Data) Move(profile string, from, to State, now time.Time) (Data, error) {
	p, there := d.Profiles[profile]
	if !there || p.Current != from {
		return d, fmt.Errorf("profile %s: %w", profile, ErrMoved)
	}
	next := d.Clone()
	next.Profiles[profile] = Profile{Transition: now.UTC(), Current: to, Previous: from}
	return next, nil
}

// Enter is the data after the triggers of a state that was entered have run.
func (d Data) Enter(profile string, in State) (Data, error) {
	p, there := d.Profiles[profile]
	if !there || p.Current != in {
		return d, fmt.Errorf("profile %s: %w", profile, ErrMoved)
	}
	next := d.Clone()
	p.Previous = p.Current
	next.Profiles[profile] = p
	return next, nil
}

// Notified is the data after an instance of a notification has sent something.
func (d Data) Notified(instance string, at time.Time) Data {
	next := d.Clone()
	next.Notifications[instance] = at.UTC()
	return next
}
