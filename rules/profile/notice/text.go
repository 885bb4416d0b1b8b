package notice

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

// Parameters are what texts speak of.
type Parameters struct {
	Node *corev1.Node
	// State is the state that the profile is in.
	State   string
	Profile Profile
	// InMaintenance reports that one of the node's profiles is in maintenance.
	InMaintenance  bool
	LastTransition time.Time
	LogDetails     bool
}

// Profile is printed, and compared, as its name.
type Profile struct {
	Name string
	// Current is its state, and Last the one before.
	Current, Last state.State
}

// String is the name.
func (p Profile) String() string { return p.Name }

// MaxText bounds a text that was rendered, in bytes.
const MaxText = 32 << 10

// text is a template.
type text struct{ template *template.Template }

// functions let a profile be compared with a text, as where it was one.
var functions = template.FuncMap{
	"eq": func(first any, others ...any) (bool, error) {
		if len(others) == 0 {
			return false, errors.New("eq: want at least two values")
		}
		for _, other := range others {
			if same(first, other) {
				return true, nil
			}
		}
		return false, nil
	},
	"ne": func(first, other any) bool { return !same(first, other) },
}

// same compares as templates do, and what is a text by another name as a text.
func same(a, b any) bool {
	x, y := plain(a), plain(b)
	if x.IsValid() && y.IsValid() {
		switch {
		case x.CanInt() && y.CanInt():
			return x.Int() == y.Int()
		case x.CanUint() && y.CanUint():
			return x.Uint() == y.Uint()
		case x.CanInt() && y.CanUint():
			return x.Int() >= 0 && uint64(x.Int()) == y.Uint()
		case x.CanUint() && y.CanInt():
			return y.Int() >= 0 && uint64(y.Int()) == x.Uint()
		case x.Kind() == reflect.String && y.Kind() == reflect.String:
			return x.String() == y.String()
		case !x.Comparable() || !y.Comparable():
			return false
		}
		return x.Equal(y)
	}
	return x.IsValid() == y.IsValid()
}

func plain(v any) reflect.Value {
	if p, ok := v.(Profile); ok {
		v = p.Name
	}
	return reflect.ValueOf(v)
}

// readText reads a required template and tries it.
func readText(o *conf.Object, key string) text {
	source := o.Required(key, "a Go template")
	parsed, err := template.New(key).Funcs(functions).Parse(source)
	if err != nil {
		o.Refuse(key, "correct the template", "%s", err)
		return text{}
	}
	t := text{parsed}
	for _, inMaintenance := range []bool{false, true} {
		if _, err := t.render(sample(inMaintenance)); err != nil && !dependsOnNode(err) {
			o.Refuse(key, "use .Node, .State, .Profile, .Profile.Current, .Profile.Last, .InMaintenance, .LastTransition or .LogDetails", "%s", err)
			break
		}
	}
	return t
}

// dependsOnNode reports whether an error may be this node's alone, such as an index that it does not have.
func dependsOnNode(err error) bool {
	return strings.Contains(err.Error(), "error calling") || strings.Contains(err.Error(), "nil pointer")
}

// sample is what a template is tried with.
func sample(inMaintenance bool) Parameters {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{state.ProfileLabel: "profile"}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeHostName, Address: "node"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	p := Parameters{
		Node: node, State: string(state.Operational), Profile: Profile{Name: "profile", Current: state.Operational, Last: state.Operational},
		LastTransition: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	if inMaintenance {
		p.State, p.Profile.Current, p.Profile.Last = string(state.Maintenance), state.Maintenance, state.Required
		p.InMaintenance, p.LogDetails = true, true
	}
	return p
}

func (t text) render(p Parameters) (string, error) {
	if t.template == nil {
		return "", errors.New("the template was refused")
	}
	var written limited
	if err := t.template.Execute(&written, p); err != nil {
		return "", err
	}
	return written.String(), nil
}

// limited refuses more than MaxText.
type limited struct{ strings.Builder }

// Write is part of io.Writer.
func (l *limited) Write(more []byte) (int, error) {
	if l.Len()+len(more) > MaxText {
		return 0, fmt.Errorf("the text has more than %d bytes", MaxText)
	}
	return l.Builder.Write(more)
}

var _ io.Writer = &limited{}
