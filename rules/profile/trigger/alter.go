package trigger

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

func readAlterLabel(o *conf.Object) Trigger {
	a := readAlter(o, "label")
	if wrong := validation.IsValidLabelValue(a.Value); len(wrong) > 0 && !a.Remove {
		o.Refuse("value", wrong[0], "%.80q cannot be the value of a label", a.Value)
	}
	if a.Key == state.StateLabel {
		o.Refuse("key", "take another", "%s is written at every evaluation", a.Key)
	}
	return a
}

func readAlterAnnotation(o *conf.Object) Trigger {
	a := readAlter(o, "annotation")
	if a.Key == state.DataAnnotation {
		o.Refuse("key", "take another", "%s has the state of the profiles", a.Key)
	}
	return a
}

func readAlterFinalizer(o *conf.Object) Trigger {
	f := Finalizer{Key: o.Required("key", "the name of a finalizer"), Remove: o.Bool("remove")}
	checkKey(o, f.Key)
	return f
}

// Alter sets or removes a label or an annotation of the node. Removing wins over a value.
type Alter struct {
	Key, Value string
	Remove     bool
	// what is "label" or "annotation".
	what string
}

func readAlter(o *conf.Object, what string) Alter {
	a := Alter{Key: o.Required("key", "the key of the "+what), Value: o.Text("value"), Remove: o.Bool("remove"), what: what}
	checkKey(o, a.Key)
	return a
}

func checkKey(o *conf.Object, key string) {
	if wrong := content.IsLabelKey(key); key != "" && len(wrong) > 0 {
		o.Refuse("key", wrong[0], "%.80q is not a key that Kubernetes takes", key)
	}
}

// Describe is part of Trigger.
func (a Alter) Describe() string {
	if a.Remove {
		return fmt.Sprintf("remove %s %s", a.what, a.Key)
	}
	return fmt.Sprintf("set %s %s to %q", a.what, a.Key, a.Value)
}

// Apply is part of Change.
func (a Alter) Apply(node *corev1.Node) bool {
	all := &node.Labels
	if a.what == "annotation" {
		all = &node.Annotations
	}
	value, there := (*all)[a.Key]
	switch {
	case a.Remove:
		delete(*all, a.Key)
		return there
	case there && value == a.Value:
		return false
	case *all == nil:
		*all = map[string]string{}
	}
	(*all)[a.Key] = a.Value
	return true
}

// Finalizer adds or removes a finalizer of the node.
type Finalizer struct {
	Key    string
	Remove bool
}

// Describe is part of Trigger.
func (f Finalizer) Describe() string {
	if f.Remove {
		return "remove finalizer " + f.Key
	}
	return "add finalizer " + f.Key
}

// Apply is part of Change.
func (f Finalizer) Apply(node *corev1.Node) bool {
	at := slices.Index(node.Finalizers, f.Key)
	switch {
	case f.Remove && at >= 0:
		node.Finalizers = slices.DeleteFunc(slices.Clone(node.Finalizers), func(key string) bool { return key == f.Key })
		return true
	case !f.Remove && at < 0:
		node.Finalizers = append(slices.Clip(node.Finalizers), f.Key)
		return true
	}
	return false
}
