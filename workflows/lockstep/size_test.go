package lockstep

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/rollout"
	"drydock/rules/spec"
)

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
		Name: "p", RunID: runOf("p"), CreatedAt: time.Now(), Revision: 1, Stage: api.StageDrain, Tiers: tiersOf(1), Nodes: randomNames(rollout.MaxNodes),
		Maintenance: json.RawMessage(`{"reason":"` + strings.Repeat("x", spec.MaxInput-20) + `"}`),
	}
	for i := range int32(rollout.MaxTiers - 1) {
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
	if err != nil || tiers.Len() != rollout.MaxTiers {
		t.Fatal(err)
	}
	t.Logf("%d bytes, read in %s", len(text), time.Since(began))
}

// largest is as much as there may be: 50 plans of all 15,000 nodes.
func largest(t *testing.T) *lockstep {
	c := &core{book: newBook()}
	l := assemble(c)
	all := randomNames(rollout.MaxNodes)
	for i := range 50 {
		in := api.PlanIntent{
			Name: fmt.Sprintf("plan-%d", i), RunID: runOf(fmt.Sprint(i)), CreatedAt: time.Now().Add(time.Duration(i) * time.Second), Revision: 3,
			Stage: api.StageDrain, Tiers: tiersOf(10, 20, int32(100+i), 2000), Nodes: append([]string{}, all...),
			Maintenance: json.RawMessage(`{"reason":"` + strings.Repeat("x", 8<<10) + `"}`),
		}
		tiers, err := in.Validate(time.Now())
		if err == nil {
			err = c.book.check(in, tiers)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.book.accept(in, tiers)
	}
	c.book.hold()
	for i, n := range c.book.nodes {
		n.stand, n.run = held, runOf(n.name)
		n.said = api.NodeProgress{Phase: api.Draining, Pending: i % 7, Waiting: "the slot"}
		n.drained = i%3 == 0
	}
	return l
}

func TestWhatIsCarriedFits(t *testing.T) {
	l := largest(t)
	began := time.Now()
	s := l.book.resolve()
	t.Logf("decided in %s", time.Since(began))
	gangs := l.book.gangs()
	for i, n := range l.book.nodes {
		if target, changed := l.book.aim(i, s, gangs, began); changed {
			n.sent, n.stale, n.unsent = target, false, i%2 == 0
		}
	}
	l.bulletin.s = s
	began = time.Now()
	changed, _ := l.bulletin.compare(l.book.plans[0])
	t.Logf("compared %d nodes of a plan in %s", len(changed), time.Since(began))
	began = time.Now()
	data, err := api.Pack(l.pack())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes are carried, packed in %s", len(data), time.Since(began))
	if len(data) > maxPayload*3/4 {
		t.Errorf("%d bytes are carried", len(data))
	}
	again := assemble(&core{book: newBook()})
	if err := again.unpack(data); err != nil {
		t.Fatal(err)
	}
	if len(again.book.nodes) != rollout.MaxNodes || len(again.book.plans) != 50 || len(again.book.plans[7].pending) != rollout.MaxNodes {
		t.Fatalf("%d nodes, %d plans", len(again.book.nodes), len(again.book.plans))
	}
	for i, n := range l.book.nodes {
		if got := again.book.nodes[i]; got.name != n.name || !reflect.DeepEqual(got.sent, n.sent) || got.raised != n.raised || !reflect.DeepEqual(got.at, n.at) || got.unsent != n.unsent {
			t.Fatalf("%+v became %+v", n, got)
		}
	}
	for offset, pages := 0, 0; ; pages++ {
		page, err := l.page(api.LockstepRequest{Limit: 1000, Offset: offset})
		if text, _ := json.Marshal(page); err != nil || len(text) > maxPayload {
			t.Fatalf("a page of %d bytes, %v", len(text), err)
		}
		if offset = page.NextOffset; offset == 0 {
			break
		}
	}
	if text, _ := json.Marshal(l.heldPage(api.HeldRequest{})); len(text) > maxPayload {
		t.Errorf("a page of what is held has %d bytes", len(text))
	}
}
