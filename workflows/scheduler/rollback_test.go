package scheduler_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/handover/handovertest"
	"drydock.dev/drydock/workflows/scheduler"
	older "drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/scheduler"
	"drydock.dev/drydock/workflows/workflowtest"
)

// TestTheSchedulerGoesThereAndBack has the runs of a scheduler done by 0.1.0 and by this release in turns.
func TestTheSchedulerGoesThereAndBack(t *testing.T) {
	want, _ := outcomeOf(t, 0, func(int) bool { return true })
	for first, name := range []string{"begun by this release", "begun by 0.1.0"} {
		t.Run(name, func(t *testing.T) {
			got, runs := outcomeOf(t, 7, func(run int) bool { return (run+first)%2 == 1 })
			if runs < 4 {
				t.Errorf("%d runs only", runs)
			}
			// 0.1.0 knows no limit of remediations, and this release has its default again after it.
			came := strings.ReplaceAll(strings.Join(got, "\n"), `,"remediations":"10%"`, "")
			if want := strings.Join(want, "\n"); came != want {
				t.Errorf("outcome\n%v, want\n%v", came, want)
			}
		})
	}
}

// TestANewFieldOfTheSchedulerIsLeftOutWhereItSaysNothing: what 0.1.0 does not know is lost with it.
func TestANewFieldOfTheSchedulerIsLeftOutWhereItSaysNothing(t *testing.T) {
	for _, types := range [][2]reflect.Type{
		{reflect.TypeFor[older.State](), reflect.TypeFor[scheduler.State]()}, {reflect.TypeFor[older.Packed](), reflect.TypeFor[scheduler.Packed]()},
	} {
		known := map[string]bool{}
		for _, f := range handovertest.FieldsOf(types[0]) {
			known[f.Path] = true
		}
		if len(known) < 5 {
			t.Fatalf("fields %v", known)
		}
		for _, f := range handovertest.FieldsOf(types[1]) {
			if !known[f.Path] && !f.Optional && (f.Above() == "" || known[f.Above()]) {
				t.Errorf("%s is written where it says nothing: give it omitempty or omitzero", f.Path)
			}
		}
	}
}

// TestWhatANewerSchedulerHandsOverIsHandedOn: a roll-back and an upgrade lose nothing of what this release does not know.
func TestWhatANewerSchedulerHandsOverIsHandedOn(t *testing.T) {
	f := newFleet(t, 3)
	text := `{"limits":{"maxParallel":1,"later":"of limits"},"revision":1,"rebuilt":true,"continueAfter":2,"later":{"depth":3.5},
		"freezes":[{"by":"amy","at":"2026-07-01T11:00:00Z","later":"of a freeze"}]}`
	if err := json.Unmarshal([]byte(text), &f.state); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		f.at(time.Duration(i)*time.Minute, func() { f.signal(api.SignalSlotRequest, workflowtest.Raw(`"noise"`)) })
	}
	f.run(time.Hour)
	if f.runs < 3 {
		t.Errorf("%d runs", f.runs)
	}
	var got map[string]any
	written, err := json.Marshal(f.state)
	if err == nil {
		err = json.Unmarshal(written, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	limits, _ := got["limits"].(map[string]any)
	freezes, _ := got["freezes"].([]any)
	if !reflect.DeepEqual(got["later"], map[string]any{"depth": 3.5}) || limits["later"] != "of limits" ||
		len(freezes) != 1 || freezes[0].(map[string]any)["later"] != "of a freeze" {
		t.Errorf("handed on is %s", written)
	}
}

// TestAStateThatCannotBeReadNeverEndsTheScheduler: nothing would be known of who holds a slot.
func TestAStateThatCannotBeReadNeverEndsTheScheduler(t *testing.T) {
	for name, text := range map[string]string{
		"of a newer form": `{"needs":2,"limits":{},"revision":1,"rebuilt":true}`,
		"of other types":  `{"limits":7}`,
		"no object":       `[]`,
		"packed":          `{"limits":{},"revision":1,"rebuilt":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			f.begin()
			f.env.ExecuteWorkflow(scheduler.Scheduler, as[scheduler.State](t, []byte(text)), []byte("cut off"))
			var panicked *temporal.PanicError
			if err := f.env.GetWorkflowError(); !errors.As(err, &panicked) {
				t.Errorf("it ended with %v, want a panic", err)
			}
		})
	}
}

// 0.1.0 does not know the kind of a holder that this release hands over. Its history goes on as it was, until a worker of this release has it.
func TestAHolderIsTheMaintenanceThat010TookItForUntilTheUpgrade(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(1000*time.Hour, "n1", "a")
	a.granted = append(a.granted, 0)
	h := f.holderOf(a)
	h.Kind = schedule.KindControlPlane
	f.state.Holders = append(f.state.Holders, h)
	f.until010 = 5 * time.Minute
	f.inventory.Running = []execution.Run{{WorkflowID: a.request.WorkflowID("")}}
	f.at(time.Minute, func() {
		if len(f.watching.Holders) == 0 || f.watching.Holders[0].WorkflowID != api.MaintenanceID("", "n1", "health-a") {
			t.Errorf("it watches %+v", f.watching.Holders)
		}
	})
	planned := f.request(10*time.Minute, "n3", "ops", 0)
	f.at(15*time.Minute, func() {
		for _, h := range f.stateNow().Holders {
			if h.Node == "n1" && h.Kind != schedule.KindControlPlane {
				t.Errorf("%+v", h)
			}
		}
	})
	f.run(20 * time.Minute)
	if len(planned.granted) != 1 {
		t.Errorf("a maintenance was granted %v", planned.granted)
	}
}

// A maintenance's answer is no signal: 0.1.0 reads it without the fields that it does not know.
func TestARebuildOf010TakesARequestWithoutItsWindows(t *testing.T) {
	f := newFleet(t, 2)
	f.state = scheduler.State{}
	f.until010 = time.Hour
	a := f.request(1000*time.Hour, "n1", "ops", 0)
	a.request.Windows = []string{"nights"}
	f.saying(a, api.SlotWanted{SlotRequest: a.request, Wants: true})
	f.expectAt(5*time.Minute, "n1/ops", "")
	f.run(10 * time.Minute)
}
