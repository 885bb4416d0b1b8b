package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/scheduler"
)

const (
	// maxPayload is what a Temporal server takes; wantedPayload is half of it.
	maxPayload    = 2 << 20
	wantedPayload = 1 << 20
	// many requests are what the scheduler has to stand.
	many = 15000
)

// words are names that a compressor can make nothing of.
type words struct{ random *rand.Rand }

func (w words) word(length int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	name := make([]byte, length)
	for i := range name {
		name[i] = letters[w.random.IntN(len(letters))]
	}
	return string(name)
}

func (w words) run() string {
	r := w.random
	return fmt.Sprintf("0190b1c%x-%04x-7%03x-8%03x-%012x", r.IntN(16), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48))
}

// fill makes so many nodes in zones and racks, and a request for each that waits.
func (f *fleet) fill(requests int, requestor func() string) {
	w := words{rand.New(rand.NewPCG(1, 2))}
	f.state.Sent, f.state.Seen = map[string]scheduler.SentReason{}, map[string]bool{}
	for i := range requests {
		run, node := w.run(), w.word(63)
		f.nodes[node] = &fleetNode{down: i%50 == 7, labels: map[string]string{"zone": string(rune('a' + i%3)), "rack": itoa(i / 40)}}
		p := api.PendingRequest{
			SlotRequest: api.SlotRequest{RunID: run, Request: schedule.Request{
				ID: run + "/1", Node: node, Requestor: requestor(), Created: f.start.Add(time.Duration(w.random.Int64N(int64(time.Hour)))),
			}},
			Code: schedule.Frozen, Reason: "frozen by amy (" + w.word(100) + ")",
		}
		f.asking[run] = &asking{request: p.SlotRequest}
		f.state.Pending = append(f.state.Pending, p)
		f.state.Sent[p.ID], f.state.Seen[p.ID] = scheduler.SentReason{Code: schedule.Frozen, At: f.start}, i%2 == 0
	}
}

// distinctRequestors is the worst that can be: every request is of somebody else.
func distinctRequestors() func() string {
	w := words{rand.New(rand.NewPCG(3, 4))}
	return func() string { return w.word(40) }
}

func fewRequestors() func() string {
	w := words{rand.New(rand.NewPCG(3, 4))}
	var teams []string
	for range 50 {
		teams = append(teams, w.word(40))
	}
	return func() string { return teams[w.random.IntN(len(teams))] }
}

// gather makes the pending requests members of gangs with the longest names.
func (f *fleet) gather(gangs int) {
	for i := range f.state.Pending {
		p := &f.state.Pending[i]
		p.Gang = &schedule.Gang{Name: strings.Repeat(string(rune('a'+i%gangs)), 253), Size: many/gangs + 1}
		f.asking[p.RunID].request.Gang = p.Gang
	}
}

func TestContinueAsNewCarriesThousandsOfRequests(t *testing.T) {
	for name, c := range map[string]struct {
		requestor func() string
		// gangs is how many gangs with the longest names they are members of.
		gangs int
		most  int
	}{
		// 5.2 bits for each letter of the names alone are 1 MB.
		"names without any pattern": {distinctRequestors(), 0, maxPayload * 3 / 4},
		// Names of nodes and runs remain.
		"fifty requestors": {fewRequestors(), 0, wantedPayload * 5 / 4},
		"twenty gangs":     {fewRequestors(), 20, wantedPayload * 5 / 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			f.fill(many, c.requestor)
			if c.gangs > 0 {
				f.gather(c.gangs)
			}
			f.state.Freezes = []schedule.Freeze{{By: "amy", At: f.start}}
			f.state.ContinueAfter = 1
			before := slices.Clone(f.state.Pending)
			f.at(time.Second, func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: before[0].ID}) })
			f.at(time.Minute, func() {
				kept := map[string]api.SlotRequest{}
				for _, p := range f.allPending() {
					kept[p.ID] = p.SlotRequest
				}
				if len(kept) != many-1 {
					t.Errorf("%d requests are left", len(kept))
				}
				for _, p := range before[1:] {
					if !reflect.DeepEqual(kept[p.ID], p.SlotRequest) {
						t.Fatalf("a request is lost: %+v", p)
					}
				}
			})
			f.run(time.Hour)
			if f.runs != 2 {
				t.Errorf("%d runs", f.runs)
			}
			if f.count(api.SignalSlotPending) > 0 {
				t.Errorf("%d were sent again what they know", f.count(api.SignalSlotPending))
			}
			f.weigh(c.most)
		})
	}
}

func TestPayloadsStaySmallWithThousandsOfRequests(t *testing.T) {
	f := newFleet(t, 1)
	f.fill(many, distinctRequestors())
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(300), Groups: []schedule.Group{
		{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Percent(20)},
		{Name: "rack", GroupBy: []string{"zone", "rack"}, MaxUnavailable: schedule.Count(4)},
	}}
	f.at(10*time.Minute, func() {
		pending := f.allPending()
		state := f.stateNow()
		if len(pending)+len(state.Holders) != many || len(state.Holders) != 300 {
			t.Errorf("%d hold a slot and %d wait", len(state.Holders), len(pending))
		}
		for _, p := range pending {
			if p.Reason == "" || p.Code == schedule.Unobserved {
				t.Fatalf("%s waits for no reason: %+v", p.ID, p)
			}
		}
		summary, waiting := f.summaryNow(), 0
		for _, p := range summary.Pending {
			waiting += p.Count
		}
		if summary.Slots.Used != 300 || waiting != many-300 {
			t.Errorf("the summary says that %d hold a slot and %d wait", summary.Slots.Used, waiting)
		}
	})
	f.run(20 * time.Minute)
	f.weigh(wantedPayload)
	if size := f.sizes["api.Summary"]; size == 0 || size > 4096 {
		t.Errorf("a summary of %d bytes", size)
	}
	if len(f.observed) == 0 || len(f.observed[0].Names) != many {
		t.Errorf("%d observations", len(f.observed))
	}
}

func TestAPageIsBoundedByWhatItSays(t *testing.T) {
	f := newFleet(t, 1)
	f.fill(4000, distinctRequestors())
	for _, by := range []string{"a", "b", "c", "d"} {
		f.update(time.Millisecond, api.UpdateFreeze, api.FreezeRequest{By: strings.Repeat(by, 253), Reason: strings.Repeat("<", 1000)})
	}
	tooLong := f.update(2*time.Millisecond, api.UpdateFreeze, api.FreezeRequest{By: "e", Reason: strings.Repeat("r", 1001)})
	f.at(time.Second, func() {
		if pending := f.allPending(); len(pending) != 4000 {
			t.Errorf("%d wait", len(pending))
		}
	})
	f.run(time.Minute)
	if tooLong.rejected == nil || !strings.Contains(tooLong.rejected.Error(), "1001 bytes are more than 1000") {
		t.Errorf("a reason without end was taken: %+v", tooLong)
	}
	// Each < of a reason is six bytes of JSON.
	if size := f.sizes["api.State"]; size < wantedPayload/2 || size > wantedPayload {
		t.Errorf("a page of %d bytes", size)
	}
}

// allPending asks for one page after the other, each as large as can be.
func (f *fleet) allPending() []api.PendingRequest {
	var all []api.PendingRequest
	for offset := 0; ; {
		state := f.stateNow(api.StateRequest{Offset: offset, Limit: 1 << 20})
		all = append(all, state.Pending...)
		if offset = state.NextOffset; offset == 0 {
			return all
		}
	}
}

// weigh checks every payload that was sent.
func (f *fleet) weigh(most int) {
	f.t.Helper()
	for what, size := range f.sizes {
		if size > 10000 {
			f.t.Logf("%s: %d bytes", what, size)
		}
		if size > most {
			f.t.Errorf("%s: %d bytes are more than %d", what, size, most)
		}
	}
}
