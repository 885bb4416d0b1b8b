package lockstep

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/handover"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// names are names of 63 characters that a compressor can make nothing of.
func randomNames(count int) []string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]string, count)
	for i := range all {
		name := make([]byte, 63)
		for j := range name {
			name[j] = letters[random.IntN(len(letters))]
		}
		all[i] = string(name)
	}
	return all
}

// maxPayload is what a Temporal server takes.
const maxPayload = 2 << 20

// TestTheLargestIntentFits: it is a signal, which is read in one go.
func TestTheLargestIntentFits(t *testing.T) {
	in := api.PlanIntent{
		Name: "p", RunID: runOf("p"), CreatedAt: time.Now(), Revision: 1, Stage: api.StageDrain, Tiers: tiersOf(1), Nodes: randomNames(plan.MaxNodes),
		Maintenance: json.RawMessage(`{"reason":"` + strings.Repeat("x", spec.MaxInput-20) + `"}`),
	}
	for i := range int32(plan.MaxTiers - 1) {
		in.Tiers = append(in.Tiers, drainplan.Entry{PodType: drainplan.Default, PodPriority: i + 2, PodSelector: strings.Repeat("a", 60)})
	}
	text, err := json.Marshal(in)
	if err != nil || len(text) > maxIntent || maxIntent > maxPayload*3/4 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	began := time.Now()
	var read api.PlanIntent
	if err := spec.DecodeStrict(text, &read); err != nil {
		t.Fatal(err)
	}
	tiers, err := read.Validate(time.Now())
	if err != nil || tiers.Len() != plan.MaxTiers {
		t.Fatal(err)
	}
	t.Logf("%d bytes, read in %s", len(text), time.Since(began))
}

// largest is as much as there may be: 50 plans of all 15,000 nodes.
func largest(t testing.TB) *lockstep {
	t.Helper()
	l := &lockstep{Known: true}
	v := &l.Inventory
	all := slices.Sorted(slices.Values(randomNames(plan.MaxNodes)))
	for i := range 50 {
		in := api.PlanIntent{
			Name: fmt.Sprintf("plan-%d", i), RunID: runOf(fmt.Sprint(i)), CreatedAt: now.Add(time.Duration(i) * time.Second), Revision: 3,
			Stage: api.StageDrain, Tiers: tiersOf(10, 20, int32(100+i), 2000), Nodes: all, Maintenance: json.RawMessage(`{"reason":"` + strings.Repeat("x", 8<<10) + `"}`),
		}
		tiers, err := in.Validate(now.Add(time.Hour))
		if err == nil {
			err = v.check(in, tiers)
		}
		if err != nil {
			t.Fatal(err)
		}
		v.accept(in, tiers)
	}
	v.regroup()
	for i, n := range v.nodes {
		n.Stand, n.Run = held, runOf(n.name)
		n.progress = api.NodeProgress{Phase: api.Draining, Pending: i % 7, Waiting: "the slot"}
		n.Drained = i%3 == 0
	}
	return l
}

// settled takes turns until a decision is no longer split, and returns how much processor time the longest of them took: the machine may be
// busy with other tests.
func settled(l *lockstep, at time.Time) (longest time.Duration, d controller.Decision) {
	for more := true; more; more = d.More {
		began := processorTime()
		d = l.Decide(controller.At(at))
		longest = max(longest, processorTime()-began)
	}
	return longest, d
}

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func BenchmarkDecide(b *testing.B) {
	l := largest(b)
	var longest time.Duration
	at := now
	for b.Loop() {
		at = at.Add(time.Minute)
		l.Inventory.changed, l.Inventory.ungrouped = true, true
		took, _ := settled(l, at)
		longest = max(longest, took)
	}
	b.ReportMetric(float64(longest.Milliseconds()), "ms/longest")
}

func BenchmarkHandOver(b *testing.B) {
	l := largest(b)
	settled(l, now)
	for b.Loop() {
		if _, err := api.Pack(l); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestore(b *testing.B) {
	l := largest(b)
	settled(l, now)
	packed, err := api.Pack(l)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		restored(b, packed)
	}
}

// restored is what the frame makes of a state that was handed over.
func restored(t testing.TB, packed []byte) *lockstep {
	t.Helper()
	var data json.RawMessage
	l := &lockstep{}
	err := api.Unpack(packed, &data)
	if err == nil {
		_, err = handover.Decode(data, l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWhatIsHandedOverFits(t *testing.T) {
	l := largest(t)
	settled(l, now)
	l.Inventory.changed, l.Inventory.ungrouped = true, true
	longest, _ := settled(l, now.Add(time.Minute))
	for i, n := range l.Inventory.nodes {
		n.Unsent = i%2 == 0
	}
	began := time.Now()
	data, err := api.Pack(l)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if len(data) > maxPayload*3/4 {
		t.Errorf("%d bytes are handed over", len(data))
	}
	began = time.Now()
	again := restored(t, data)
	t.Logf("the longest turn took %s; %d bytes, packed in %s, restored in %s", longest, len(data), took, time.Since(began))
	v, w := &l.Inventory, &again.Inventory
	if len(w.nodes) != plan.MaxNodes || len(w.plans) != 50 || len(w.plans[7].pending) != plan.MaxNodes {
		t.Fatalf("%d nodes, %d plans", len(w.nodes), len(w.plans))
	}
	for i, n := range v.nodes {
		if got := w.nodes[i]; got.name != n.name || got.nodeState != n.nodeState || !reflect.DeepEqual(got.target, n.target) || !reflect.DeepEqual(got.at, n.at) || !slices.Equal(got.of, n.of) {
			t.Fatalf("%+v became %+v", n, got)
		}
	}
	for offset, pages := 0, 0; ; pages++ {
		page, err := l.page(api.LockstepRequest{Limit: 1000, Offset: offset}, now)
		if text, _ := json.Marshal(page); err != nil || len(text) > maxPayload {
			t.Fatalf("a page of %d bytes, %v", len(text), err)
		}
		if offset = page.NextOffset; offset == 0 {
			break
		}
	}
	if text, _ := json.Marshal(v.heldPage(api.HeldRequest{})); len(text) > maxPayload {
		t.Errorf("a page of what is held has %d bytes", len(text))
	}
}
