package invocation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/startertest"
)

func TestGoalReady(t *testing.T) {
	finished := startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	finished.Result.Transitions = []api.Transition{{Phase: api.Ready}}
	for name, c := range map[string]struct {
		view    client.View
		reached bool
		code    int
	}{
		"draining":            {startertest.View(api.Draining), false, 0},
		"ready":               {startertest.View(api.Ready), true, 0},
		"requestor failed":    {startertest.View(api.RequestorFailed), false, 1},
		"over already":        {finished, true, 0},
		"completed unready":   {startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), false, 1},
		"cancelled before it": {startertest.Ended(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, ""), false, 3},
		"node gone before it": {startertest.Ended(api.NodeGone, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), false, 1},
	} {
		reached, err := client.Ready(c.view)
		err = goalMissed(err)
		if reached != c.reached || exit.CodeOf(err) != c.code {
			t.Errorf("%s: reached %v with code %d (%v), want %v with %d", name, reached, exit.CodeOf(err), err, c.reached, c.code)
		}
	}
}

func TestGoalEnd(t *testing.T) {
	completed := startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	cancelled := startertest.Ended(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "")
	for name, c := range map[string]struct {
		goal client.Goal
		view client.View
		code int
	}{
		"completes":                {client.Completed, completed, 0},
		"cancelled, not completed": {client.Completed, cancelled, 3},
		"cancelled, as wanted":     {client.Ends(api.Cancelled), cancelled, 0},
		"completed, not cancelled": {client.Ends(api.Cancelled), completed, 1},
	} {
		if reached, err := c.goal(c.view); !reached || exit.CodeOf(goalMissed(err)) != c.code {
			t.Errorf("%s: reached %v with code %d (%v), want %d", name, reached, exit.CodeOf(err), err, c.code)
		}
	}
	if reached, err := client.Completed(startertest.View(api.Releasing)); reached || err != nil {
		t.Errorf("a running one: %v, %v", reached, err)
	}
}

func TestStoppedWaitSaysHowToGoOn(t *testing.T) {
	c := &Connection{Program: "drydock", Clock: func() time.Time { return startertest.Noon }}
	v := startertest.View(api.Pending)
	for cause, code := range map[error]int{exit.ErrTimedOut: exit.TimedOut, exit.ErrInterrupted: exit.Interrupted, errors.New("x"): exit.Failed} {
		if err := c.Stopped(cause, v, "it"); exit.CodeOf(err) != code {
			t.Errorf("%v: code %d, want %d", err, exit.CodeOf(err), code)
		}
	}
	if c.Stopped(nil, v, "it") != nil {
		t.Error("no error became one")
	}
	v.Status.WaitingFor = "a free slot"
	if err := c.Stopped(exit.ErrTimedOut, v, "it"); !strings.Contains(err.Error(), "a free slot") {
		t.Errorf("%v does not say what the maintenance waits for", err)
	}
}

func TestHintsComeTwiceSoonAndThenRarely(t *testing.T) {
	var h hints
	var given []int
	for second := range 200 {
		if h.due(&client.NoWorkerError{}, startertest.Noon.Add(time.Duration(second)*time.Second)) {
			given = append(given, second)
		}
	}
	want := []int{0, 10, 70, 130, 190}
	if len(given) != len(want) {
		t.Fatalf("hints at %v, want %v", given, want)
	}
	for i := range want {
		if given[i] != want[i] {
			t.Fatalf("hints at %v, want %v", given, want)
		}
	}
}

func TestASilenceIsToldWhenItLasts(t *testing.T) {
	silent, gone := &client.NoWorkerError{Silent: true}, &client.NoWorkerError{}
	began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		// unanswered is what the look finds after so many seconds.
		unanswered map[int]error
		want       []int
	}{
		"nobody is there":          {map[int]error{0: gone, 1: gone, 10: gone, 11: gone, 69: gone, 70: gone}, []int{0, 10, 70}},
		"one look takes long":      {map[int]error{0: silent, 2: nil, 12: silent, 14: nil, 30: silent}, nil},
		"the worker has stopped":   {map[int]error{0: silent, 5: silent, 10: silent, 15: silent, 20: silent}, []int{10, 20}},
		"a worker that is busy":    {map[int]error{0: &client.BusyError{}, 9: &client.BusyError{}, 11: &client.BusyError{}}, []int{11}},
		"silent first, gone later": {map[int]error{0: silent, 4: gone, 5: gone}, []int{4}},
	} {
		var h hints
		var got []int
		for second := range 100 {
			if unanswered, looked := c.unanswered[second]; looked && h.due(unanswered, began.Add(time.Duration(second)*time.Second)) {
				got = append(got, second)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: told after %v s, want %v", name, got, c.want)
		}
	}
}
