package mirror

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)

// in is the status of a maintenance in a phase.
func in(phase api.Phase) *v1alpha1.NodeMaintenanceStatus {
	s := &v1alpha1.NodeMaintenanceStatus{Phase: phase, Since: At(noon)}
	s.RunID = "first"
	s.Conditions = []metav1.Condition{
		Condition(v1alpha1.Reconciling, phase != api.Ready, string(phase), ""), Condition(v1alpha1.Stalled, false, string(phase), ""),
		Condition(v1alpha1.Ready, phase == api.Ready, string(phase), ""),
	}
	return s
}

// silent is that of one of which nobody says how far it is.
func silent() *v1alpha1.NodeMaintenanceStatus {
	s := &v1alpha1.NodeMaintenanceStatus{}
	s.RunID = "first"
	Silent(s, errors.New("no worker answers"))
	return s
}

// A workflow of which nobody says how far it is, begins where nothing was known before, and otherwise stays as it was.
func TestSilenceChangesNoPhase(t *testing.T) {
	first := after(&v1alpha1.NodeMaintenanceStatus{}, silent(), noon).(*v1alpha1.NodeMaintenanceStatus)
	if first.Phase != api.Pending || first.RunID != "first" || first.Message != "no worker answers" {
		t.Errorf("nothing was known before: %+v", first)
	}
	ready := after(first, in(api.Ready), noon)
	still := after(ready, silent(), noon.Add(time.Hour)).(*v1alpha1.NodeMaintenanceStatus)
	if !meta.IsStatusConditionTrue(still.Conditions, v1alpha1.Ready) || still.Phase != api.Ready || still.Since == nil || still.Message != "no worker answers" {
		t.Errorf("a node that was Ready: %+v", still)
	}
	if shown := ready.Common(); shown.Message != "" {
		t.Errorf("the status before has the message %q of the one after", shown.Message)
	}
	gone := &v1alpha1.NodeMaintenanceStatus{}
	stall(gone, reasonLost, "it is gone")
	lost := after(ready, gone, noon)
	if !meta.IsStatusConditionTrue(lost.Common().Conditions, v1alpha1.Stalled) || lost.State() != string(api.Ready) {
		t.Errorf("one that is lost: %+v", lost)
	}
}

func TestAStatusIsWrittenOnceForEachChange(t *testing.T) {
	first := after(&v1alpha1.NodeMaintenanceStatus{}, in(api.Draining), noon)
	if again := after(first, in(api.Draining), noon.Add(time.Hour)); !same(first, again) {
		t.Errorf("an hour later, and nothing else: %+v, before %+v", again, first)
	}
	ready := after(first, in(api.Ready), noon.Add(time.Hour))
	if same(first, ready) {
		t.Error("another phase is the same status")
	}
	at := func(s v1alpha1.Status, kind string) metav1.Time {
		return meta.FindStatusCondition(s.Common().Conditions, kind).LastTransitionTime
	}
	if was, is := at(first, v1alpha1.Stalled), at(ready, v1alpha1.Stalled); !was.Equal(&is) {
		t.Errorf("Stalled stayed False, and its time went from %s to %s", was, is)
	}
	if was, is := at(first, v1alpha1.Ready), at(ready, v1alpha1.Ready); was.Equal(&is) {
		t.Error("Ready became True, and has the time of before")
	}
}

// Somebody may have taken the conditions off, while nobody says how far the workflow is.
func TestAStatusWithoutConditionsIsFollowed(t *testing.T) {
	forged := &v1alpha1.NodeMaintenanceStatus{Phase: api.Ready}
	forged.RunID = "first"
	is := after(forged, silent(), noon)
	if len(is.Common().Conditions) > 0 || is.State() != string(api.Ready) {
		t.Errorf("it shows %+v", is)
	}
	(&mirrored{Reconciler: &Reconciler{}, object: &v1alpha1.NodeMaintenance{}}).record(forged, is) // which has nothing to tell
}

// A refused change stalls an object whatever its workflow does.
func TestARefusedChangeStalls(t *testing.T) {
	is := answer{refused: "the plan is ending", stalls: true}.on(in(api.Ready)).Common()
	stalled, reconciling := meta.FindStatusCondition(is.Conditions, v1alpha1.Stalled), meta.FindStatusCondition(is.Conditions, v1alpha1.Reconciling)
	if stalled.Status != metav1.ConditionTrue || stalled.Reason != reasonRefused || reconciling.Status != metav1.ConditionFalse || is.Message != "the plan is ending" {
		t.Errorf("%+v", is)
	}
	if !meta.IsStatusConditionTrue(is.Conditions, v1alpha1.Ready) || len(is.Conditions) != 3 {
		t.Errorf("its other conditions are %+v", is.Conditions)
	}
}
