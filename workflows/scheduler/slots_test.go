package scheduler

import (
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func slotRequest(id, run, node string) api.SlotRequest {
	return api.SlotRequest{RunID: run, Request: schedule.Request{ID: id, Node: node, Requestor: "ops", Created: noon}}
}

func emptySlots() *slots { return newSlots(new(State{}.withDefaults())) }

func names(pending []api.PendingRequest) []string {
	var all []string
	for _, p := range pending {
		all = append(all, p.Node)
	}
	return all
}

func TestSlotsMoveARequestFromWaitingToHoldingToReleased(t *testing.T) {
	s := emptySlots()
	s.enqueue(slotRequest("a/1", "a", "n1"))
	if !s.waitsForCluster() || !s.knows("a/1") || s.holds("a/1") || !s.waitsUnobserved() {
		t.Fatalf("it waits: %+v", s)
	}
	p := s.pendingByID()["a/1"]
	h := s.grant(p, noon)
	if missing := s.keepWaiting(nil, nil); len(missing) > 0 || len(s.Pending) > 0 {
		t.Errorf("%d still wait", len(s.Pending))
	}
	if got, ok := s.holder("a/1"); !ok || got != h || h.Node != "n1" || !h.GrantedAt.Equal(noon) {
		t.Errorf("holder %+v", got)
	}
	if all, ours := s.nodes(); !slices.Equal(all, []string{"n1"}) || !slices.Equal(ours, []string{"n1"}) {
		t.Errorf("nodes %v, ours %v", all, ours)
	}
	s.free("a/1", noon)
	if len(s.Holders) > 0 || s.waitsForCluster() || s.knows("a/1") || len(s.requestsOf("a")) > 0 {
		t.Errorf("it is free: %+v", s)
	}
	// Watches lag behind: the node counts as ours for a while.
	if all, ours := s.nodes(); len(all) > 0 || !slices.Equal(ours, []string{"n1"}) {
		t.Errorf("nodes %v, ours %v", all, ours)
	}
	s.forgetReleased(noon.Add(releasedFor))
	if len(s.Released) != 1 {
		t.Errorf("forgotten too early")
	}
	s.forgetReleased(noon.Add(releasedFor + time.Second))
	if len(s.Released) != 0 {
		t.Errorf("not forgotten: %v", s.Released)
	}
}

func TestSlotsGoOnWithWhatWasCarried(t *testing.T) {
	s := newSlots(new(State{
		Holders: api.List[api.Holder]{{Grant: schedule.Grant{RequestID: "a/1", Node: "n1"}, RunID: "a"}},
		Pending: []api.PendingRequest{unobserved(slotRequest("b/1", "b", "n2")), unobserved(slotRequest("b/2", "b", "n2"))},
	}.withDefaults()))
	if !s.holds("a/1") || s.holds("b/1") || !slices.Equal(s.requestsOf("b"), []string{"b/1", "b/2"}) {
		t.Errorf("%+v", s.known)
	}
	s.free("b/1", noon)
	if got := s.requestsOf("b"); !slices.Equal(got, []string{"b/2"}) || len(s.Pending) != 1 || len(s.Released) != 0 {
		t.Errorf("left: %v, %+v", got, s)
	}
	s.free("nobody/1", noon)
	if len(s.Holders) != 1 || len(s.Pending) != 1 {
		t.Errorf("an unknown request freed another: %+v", s)
	}
}

func TestSlotsReturnTheRequestsWhoseNodeIsMissing(t *testing.T) {
	s := emptySlots()
	for _, node := range []string{"n1", "n2", "n3"} {
		s.enqueue(slotRequest(node+"/1", node, node))
	}
	requests := s.pendingByID()
	missing := s.keepWaiting([]schedule.Refusal{
		{Request: requests["n3/1"].Request, Code: schedule.MaxParallel, Reason: "full"},
		{Request: requests["n2/1"].Request, Code: schedule.NodeMissing},
		{Request: requests["n1/1"].Request, Code: schedule.Frozen},
	}, requests)
	if !slices.Equal(names(missing), []string{"n2"}) || !slices.Equal(names(s.Pending), []string{"n3", "n1"}) {
		t.Errorf("missing %v, waiting %v", names(missing), names(s.Pending))
	}
	if s.Pending[0].Reason != "full" || !s.Seen["n3/1"] || s.Seen["n1/1"] || s.Seen["n2/1"] {
		t.Errorf("waiting %+v, seen %v", s.Pending, s.Seen)
	}
}

func TestReasonsAreSentOnceAndAFewAtATime(t *testing.T) {
	s := emptySlots()
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		s.enqueue(slotRequest(node+"/1", node, node))
	}
	wait := func(codes ...schedule.Code) {
		var refused []schedule.Refusal
		for i, code := range codes {
			refused = append(refused, schedule.Refusal{Request: s.Pending[i].Request, Code: code})
		}
		s.keepWaiting(refused, s.pendingByID())
	}
	wait(schedule.MaxParallel, schedule.MaxParallel, schedule.MaxParallel, schedule.Unobserved)
	steps := []struct {
		what  string
		after time.Duration
		most  int
		do    func()
		want  []string
		later bool
	}{
		{"no room", 0, 0, nil, nil, false},
		{"the first", 0, 2, nil, []string{"n1", "n2"}, false},
		{"the rest, but whom nobody looked at", 0, 9, nil, []string{"n3"}, false},
		{"another reason too soon", time.Second, 9, func() {
			wait(schedule.Frozen, schedule.MaxParallel, schedule.MaxParallel, schedule.Unobserved)
		}, nil, true},
		{"another reason", resendAfter, 9, nil, []string{"n1"}, false},
		{"who asks again", resendAfter, 9, func() { s.sendAgain("n2/1") }, []string{"n2"}, false},
	}
	for _, step := range steps {
		if step.do != nil {
			step.do()
		}
		unsent, later := s.takeUnsent(noon.Add(step.after), step.most)
		if got := names(unsent); !slices.Equal(got, step.want) || later != step.later {
			t.Errorf("%s: sent %v, want %v; later %v", step.what, got, step.want, later)
		}
	}
}

func TestPackedStateIsTheSameUnpacked(t *testing.T) {
	state := State{}.withDefaults()
	for i := range packAbove + 1 {
		id := asJSON(i)
		run := "run-" + id
		state.Pending = append(state.Pending, unobserved(slotRequest(run+"/1", run, "n"+id)))
		state.Seen[run+"/1"] = true
		state.Sent[run+"/1"] = SentReason{Code: schedule.Frozen}
	}
	rest, packed, err := pack(state)
	if err != nil || len(rest.Pending) > 0 || len(packed) == 0 {
		t.Fatalf("%d bytes, %d left, %v", len(packed), len(rest.Pending), err)
	}
	again, err := unpack(rest.withDefaults(), packed)
	if err != nil || asJSON(again) != asJSON(state) {
		t.Errorf("%v: it changed on the way", err)
	}
	if _, err := unpack(State{}.withDefaults(), []byte("no")); err == nil {
		t.Error("rubbish was unpacked")
	}
}

// A request of another kind that is taken for a maintenance's would be granted by other limits, and its holder asked under a wrong name.
func TestPackedRequestsKeepTheirKinds(t *testing.T) {
	state := State{}.withDefaults()
	for i := range packAbove + 1 {
		r := slotRequest(asJSON(i)+"/1", asJSON(i), "n"+asJSON(i))
		r.Kind = []schedule.HolderKind{schedule.KindMaintenance, schedule.KindControlPlane, schedule.KindProfile}[i%3]
		state.Pending = append(state.Pending, unobserved(r))
	}
	rest, packed, err := pack(state)
	if err != nil {
		t.Fatal(err)
	}
	again, err := unpack(rest.withDefaults(), packed)
	if err != nil || asJSON(again) != asJSON(state) {
		t.Errorf("%v: it changed on the way", err)
	}
}
