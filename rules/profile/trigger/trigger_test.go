package trigger

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/profile/conf"
)

func configured(kind, config string) (Trigger, error) {
	var p conf.Problems
	o := conf.Read([]byte("config: "+config+"\n"), nil, &p).Object("config")
	t, _ := Read(kind, o)
	for _, key := range o.Unknown() {
		p.Add(o.At(key), "", "unknown")
	}
	return t, p.Join()
}

func made(t *testing.T, kind, config string) Trigger {
	t.Helper()
	k, err := configured(kind, config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestChangesOfTheNode(t *testing.T) {
	for _, c := range []struct {
		kind, config, says string
		before, after      corev1.Node
	}{
		{"alterLabel", "{key: a, value: b}", `set label a to "b"`, corev1.Node{}, labelled("a", "b")},
		{"alterLabel", "{key: a}", `set label a to ""`, labelled("a", "x"), labelled("a", "")},
		{"alterLabel", "{key: a, value: true}", `set label a to "true"`, labelled("b", "c"), labelled("a", "true", "b", "c")},
		{"alterLabel", "{key: a, value: b, remove: yes}", "remove label a", labelled("a", "b", "c", "d"), labelled("c", "d")},
		{"alterAnnotation", "{key: a, value: b}", `set annotation a to "b"`, corev1.Node{}, annotated("a", "b")},
		{"alterAnnotation", "{key: a, remove: true}", "remove annotation a", annotated("a", "b", "c", "d"), annotated("c", "d")},
		{"alterFinalizer", "{key: example.com/keep}", "add finalizer example.com/keep", finalized("x"), finalized("x", "example.com/keep")},
		{"alterFinalizer", "{key: x, remove: true}", "remove finalizer x", finalized("x", "y"), finalized("y")},
	} {
		t.Run(c.kind+" "+c.config, func(t *testing.T) {
			change := made(t, c.kind, c.config).(Change)
			node := c.before.DeepCopy()
			if !change.Apply(node) || !reflect.DeepEqual(*node, c.after) {
				t.Errorf("%+v", node.ObjectMeta)
			}
			if change.Apply(node) || !reflect.DeepEqual(*node, c.after) {
				t.Error("done again it makes a difference")
			}
			if change.Describe() != c.says {
				t.Error(change.Describe())
			}
		})
	}
}

func TestRemovingWhatIsNotThere(t *testing.T) {
	for _, kind := range []string{"alterLabel", "alterAnnotation", "alterFinalizer"} {
		var node corev1.Node
		if made(t, kind, "{key: a, remove: true}").(Change).Apply(&node) || !reflect.DeepEqual(node, corev1.Node{}) {
			t.Errorf("%s: %+v", kind, node)
		}
	}
}

func pairs(of []string) map[string]string {
	all := map[string]string{}
	for pair := range slices.Chunk(of, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}

func labelled(of ...string) (n corev1.Node) { n.Labels = pairs(of); return n }

func annotated(of ...string) (n corev1.Node) { n.Annotations = pairs(of); return n }

func finalized(of ...string) (n corev1.Node) { n.Finalizers = of; return n }

func TestDescribedTriggers(t *testing.T) {
	if got := made(t, "eviction", "{action: drain}"); got != (Eviction{Action: Drain, EvictionTimeout: 10 * time.Minute, DeletionTimeout: 10 * time.Minute}) {
		t.Errorf("%+v", got)
	}
	if got := made(t, "eviction", "{action: drain, forceEviction: true, deletionTimeout: 60}"); got != (Eviction{Drain, true, 10 * time.Minute, time.Minute}) {
		t.Errorf("%+v", got)
	}
	if got := made(t, "eviction", "{action: uncordon}").Describe(); got != "uncordon the node" {
		t.Error(got)
	}
	if got := made(t, "maintenance", "~").(Maintenance); string(got.Input) != "{}" {
		t.Errorf("%s", got.Input)
	}
	if got := made(t, "maintenance", "{reason: kernel, priority: 5}").(Maintenance); string(got.Input) != `{"priority":5,"reason":"kernel"}` {
		t.Errorf("%s", got.Input)
	}
	if got := made(t, "job", "{templateFile: /job.yaml, namespace: kube-system}"); got != (Job{"/job.yaml", "kube-system", 10 * time.Minute}) {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsWrongWithAConfiguration(t *testing.T) {
	for _, c := range []struct{ kind, config, want string }{
		{"alterFinalizer", "{}", "config.key: required"},
		{"alterLabel", "{value: x}", "config.key: required"},
		{"alterLabel", "~", "config: required"},
		{"alterLabel", "{key: a b}", "config.key: \"a b\" is not a key"},
		{"alterLabel", "{key: a, value: a b}", "config.value: \"a b\" cannot be the value of a label"},
		{"alterLabel", "{key: cloud.sap/maintenance-state}", "config.key: cloud.sap/maintenance-state is written"},
		{"alterAnnotation", "{key: cloud.sap/maintenance-data}", "config.key: cloud.sap/maintenance-data has the state"},
		{"eviction", "{}", "config.action: required"},
		{"eviction", "{action: Drain}", "config.action: \"Drain\" is not an action"},
		{"eviction", "{action: drain, evictionTimeout: x}", "config.evictionTimeout: is \"x\", and a duration"},
		{"maintenance", "{node: n}", "config.node: the profile and the node say that"},
		{"maintenance", "{nonsense: n}", "config.nonsense: "},
		{"maintenance", "{drain: {mode: nope}, reason: [a]}", "config."},
		{"job", "{namespace: n}", "config.templateFile: required"},
		{"job", "{templateFile: x, namespace: Kube}", "config.namespace: \"Kube\" is not a namespace"},
		{"job", "{templateFile: x, namespace: n, deadline: 0s}", "config.deadline: 0s is no time"},
	} {
		t.Run(c.kind+" "+c.config, func(t *testing.T) {
			if _, err := configured(c.kind, c.config); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	if got := strings.Join(Kinds(), " "); got != "alterAnnotation alterFinalizer alterLabel eviction job maintenance" {
		t.Error(got)
	}
	if _, known := Read("alterHypervisor", nil); known || !NotBuilt("alterHypervisor") || NotBuilt("eviction") {
		t.Error("alterHypervisor")
	}
}
