package maintenanceoperator

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/rules/spec"
)

func TestEveryReasonIsShownInItsOrder(t *testing.T) {
	been := func(phases ...api.Phase) (all []api.Transition) {
		for _, p := range phases {
			all = append(all, api.Transition{Phase: p})
		}
		return all
	}
	for name, c := range map[string]struct {
		from, to string
		phases   []api.Transition
		want     []string
	}{
		"a maintenance that was fast": {objects.Pending, objects.Ready, nil, []string{"Scheduled", "Cordon", "WaitForPodCompletion", "Draining", "Ready"}},
		"the phase has none":          {objects.Ready, "", nil, nil},
		"nothing new":                 {objects.Draining, objects.Draining, nil, nil},
		"it failed unseen":            {objects.Draining, objects.RequestorFailed, nil, []string{"Ready", "RequestorFailed"}},
		"it failed":                   {objects.Ready, objects.RequestorFailed, nil, []string{"RequestorFailed"}},
		"it works again":              {objects.RequestorFailed, objects.Ready, nil, []string{"Ready"}},
		"given back":                  {objects.Draining, objects.Pending, been(api.Pending, api.Draining, api.Pending), []string{"Pending"}},
		"taken over":                  {objects.Draining, objects.Pending, been(api.Pending), nil},
		"taken over after a failure":  {objects.RequestorFailed, objects.Draining, been(api.Pending, api.Draining), nil},
		"a reason of somebody else's": {"Unknown", objects.Cordon, nil, []string{"Cordon"}},
	} {
		var got []string
		for from := c.from; len(got) < 10; {
			if from = following(from, c.to, c.phases); from == "" {
				break
			}
			got = append(got, from)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func anObject(change func(*objects.NodeMaintenance)) *objects.NodeMaintenance {
	o := &objects.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nvidia-operator-worker-01", UID: "uid-1"},
		Spec:       objects.NodeMaintenanceSpec{NodeName: "worker-01", RequestorID: "nvidia.doca-driver-upgrade"},
	}
	if change != nil {
		change(o)
	}
	return o
}

func TestAnObjectAsksForWhatTheOperatorWouldDo(t *testing.T) {
	_, plain, err := inputOf(anObject(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !plain.Cordon || plain.Drain.Mode != spec.ModeNone || plain.WaitForPodCompletion != nil || plain.ReadyTimeout != 0 || plain.Preflight != spec.PreflightOff {
		t.Errorf("%+v", plain)
	}
	want := spec.Object{Resource: objects.Resource, Namespace: "default", Name: "nvidia-operator-worker-01", UID: "uid-1"}
	if plain.Object == nil || *plain.Object != want {
		t.Errorf("it is asked for by %+v", plain.Object)
	}

	full := func(o *objects.NodeMaintenance) {
		o.Spec.Cordon = new(false)
		o.Spec.WaitForPodCompletion = &objects.WaitForPods{PodSelector: "app=training", TimeoutSeconds: 90}
		o.Spec.DrainSpec = &objects.DrainSpec{
			Force: true, DeleteEmptyDir: true, PodSelector: "app=web", TimeoutSeconds: 300,
			PodEvictionFilters: []objects.EvictionFilter{{ByResourceNameRegex: new("nvidia.com/gpu-.*")}},
		}
	}
	_, asked, err := inputOf(anObject(full), json.RawMessage(`{"readyTimeout":"4h","drain":{"escalation":[{"after":"1h","do":"giveBack"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	d := asked.Drain
	if asked.Cordon || asked.WaitForPodCompletion.Timeout.Std() != 90*time.Second || asked.ReadyTimeout.Std() != 4*time.Hour || d.Mode != spec.ModeEvict ||
		!d.Force || !d.DeleteEmptyDir || d.PodSelector != "app=web" || d.PodEvictionFilters[0].ByResourceNameRegex != "nvidia.com/gpu-.*" || len(d.Escalation) != 1 {
		t.Errorf("%+v", asked)
	}
	if _, without, err := inputOf(anObject(full), nil); err != nil || len(without.Drain.Escalation) != 0 {
		t.Errorf("%v: %+v", err, without.Drain.Escalation)
	}

	_, _, err = inputOf(anObject(func(o *objects.NodeMaintenance) {
		o.Spec.DrainSpec = &objects.DrainSpec{PodEvictionFilters: []objects.EvictionFilter{{}}}
	}), nil)
	if err == nil || !strings.Contains(err.Error(), "drain.podEvictionFilters[0]") {
		t.Errorf("a filter without a name: %v", err)
	}
}

// What the operator had begun with keeps its cordon and goes first; what is deleted is drained no further.
func TestAnObjectThatTheOperatorLeftIsTakenOver(t *testing.T) {
	left := func(reason, initial string, deleted bool) func(*objects.NodeMaintenance) {
		return func(o *objects.NodeMaintenance) {
			meta.SetStatusCondition(&o.Status.Conditions, mirror.Condition(objects.ConditionReady, false, reason, ""))
			o.Annotations = map[string]string{objects.InitialState: initial}
			o.Spec.DrainSpec = &objects.DrainSpec{}
			if deleted {
				o.DeletionTimestamp = new(metav1.Now())
			}
		}
	}
	type taken struct {
		cordoned, first bool
		mode            string
	}
	for name, c := range map[string]struct {
		reason, initial string
		deleted         bool
		want            taken
	}{
		"it waited":                {objects.Pending, "", false, taken{mode: spec.ModeEvict}},
		"it had a slot":            {objects.Scheduled, "", false, taken{first: true, mode: spec.ModeEvict}},
		"it had cordoned":          {objects.Draining, "false", false, taken{true, true, spec.ModeEvict}},
		"others had":               {objects.Draining, "true", false, taken{first: true, mode: spec.ModeEvict}},
		"deleted after the cordon": {objects.Draining, "false", true, taken{true, true, spec.ModeNone}},
		"it was Ready":             {objects.Ready, "false", false, taken{true, true, spec.ModeNone}},
		"its requestor had failed": {objects.RequestorFailed, "false", false, taken{true, true, spec.ModeNone}},
		"an annotation of nobody":  {objects.Pending, "false", false, taken{mode: spec.ModeEvict}},
	} {
		_, asked, err := inputOf(anObject(left(c.reason, c.initial, c.deleted)), nil)
		if got := (taken{asked.Object.Cordoned, asked.Priority > 0, asked.Drain.Mode}); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestOptionsAreCheckedAtTheStart(t *testing.T) {
	for _, o := range []Options{{}, {Namespace: "operators"}, {Namespace: "operators", Input: `{"readyTimeout":"4h"}`}, {Namespace: "operators", Input: `{"drain":{"escalation":[{"after":"1h","do":"kill"}]}}`}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{{Input: `{"readyTimeout":"4h"}`}, {Namespace: "operators", Input: `{"readyTimeout":"soon"}`}, {Namespace: "operators", Input: `{`}} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--maintenance-operator-input") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A copy shares nothing with its original: the cache's objects are never changed.
func TestCopiesShareNothing(t *testing.T) {
	o := anObject(func(o *objects.NodeMaintenance) {
		o.Spec.AdditionalRequestors = []string{"a"}
		o.Spec.DrainSpec = &objects.DrainSpec{PodEvictionFilters: []objects.EvictionFilter{{ByResourceNameRegex: new("x")}}}
		o.Status.Conditions = []metav1.Condition{{Type: "Ready"}}
		o.Status.Drain = &objects.DrainStatus{WaitForEviction: []string{"p"}}
	})
	before := o.DeepCopy()
	c := o.DeepCopy()
	c.Spec.AdditionalRequestors[0], *c.Spec.DrainSpec.PodEvictionFilters[0].ByResourceNameRegex = "b", "y"
	c.Status.Conditions[0].Type, c.Status.Drain.WaitForEviction[0] = "Failed", "q"
	if diff := cmp.Diff(before, o); diff != "" {
		t.Error(diff)
	}
}
