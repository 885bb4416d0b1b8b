package schedule

import (
	"encoding/json"
	"strings"
	"testing"
)

func most(n int) *int { return &n }

func quota(q Quotas) Limits { return Limits{MaxParallel: Unlimited(), Quotas: q} }

func TestHeldQuotas(t *testing.T) {
	ask := func(node int, requestor string) Request {
		return Request{ID: requestor + "-" + worker(node), Node: worker(node), Requestor: requestor, Created: epoch}
	}
	held := func(node int, requestor string) Grant {
		return Grant{RequestID: "held-" + worker(node), Node: worker(node), Requestor: requestor}
	}
	runDecideCases(t, []decideCase{
		{"a requestor waits for its quota, and another goes on",
			Input{Limits: quota(Quotas{HeldPerRequestor: most(1)}), Observed: cluster(4),
				Granted: []Grant{held(1, "alice")}, Pending: []Request{ask(2, "alice"), ask(3, "bob")}},
			[]string{"granted bob-worker-03", "Quota alice-worker-02: quota: alice holds 1 node (worker-01); the limit is 1"}},
		{"the quota is used up within one decision",
			Input{Limits: quota(Quotas{HeldPerRequestor: most(2)}), Observed: cluster(4),
				Pending: []Request{ask(1, "alice"), ask(2, "alice"), ask(3, "alice")}},
			[]string{"granted alice-worker-01", "granted alice-worker-02",
				"Quota alice-worker-03: quota: alice holds 2 nodes (worker-01, worker-02); the limit is 2"}},
		{"a quota of one's own counts for oneself",
			Input{Limits: quota(Quotas{HeldPerRequestor: most(1), Requestors: map[string]RequestorQuota{"alice": {Held: most(2)}}}),
				Observed: cluster(4), Granted: []Grant{held(1, "alice")}, Pending: []Request{ask(2, "alice")}},
			[]string{"granted alice-worker-02"}},
		{"who has used up its quota keeps nobody from the node",
			Input{Limits: quota(Quotas{Requestors: map[string]RequestorQuota{"alice": {Held: most(1)}}}), Observed: cluster(4),
				Granted: []Grant{held(1, "alice")}, Pending: []Request{ask(2, "alice"), ask(2, "bob")}},
			// alice holds a node already and ranks first.
			[]string{"granted bob-worker-02", "Quota alice-worker-02: quota: alice holds 1 node (worker-01); the limit is 1"}},
		{"a quota of pending requests keeps nobody waiting here",
			Input{Limits: quota(Quotas{PendingPerRequestor: most(1)}), Observed: cluster(4),
				Pending: []Request{ask(1, "alice"), ask(2, "alice")}},
			[]string{"granted alice-worker-01", "granted alice-worker-02"}},
	})
}

func TestPendingQuotas(t *testing.T) {
	q := Quotas{PendingPerRequestor: most(2), Requestors: map[string]RequestorQuota{"intern": {Pending: most(0)}, "sre": {Held: most(9)}}}
	for _, c := range []struct {
		requestor string
		waiting   int
		want      string
	}{
		{"alice", 0, ""}, {"alice", 1, ""},
		{"alice", 2, "quota: alice has 2 requests that wait for a slot; the limit is 2 (pending)"},
		{"sre", 2, "quota: sre has 2 requests that wait for a slot; the limit is 2 (pending)"},
		{"intern", 0, "quota: intern may not ask for nodes"},
	} {
		if got := q.OverPending(c.requestor, c.waiting); got != c.want {
			t.Errorf("%s with %d: %q, want %q", c.requestor, c.waiting, got, c.want)
		}
	}
	if got := (Quotas{}).OverPending("alice", 1000); got != "" {
		t.Errorf("without a quota: %q", got)
	}
}

func TestQuotasThatCannotBeAreRefused(t *testing.T) {
	many := map[string]RequestorQuota{}
	for i := range maxQuotas + 1 {
		many[worker(i)] = RequestorQuota{Held: most(1)}
	}
	for _, c := range []struct {
		quotas Quotas
		want   string
	}{
		{Quotas{PendingPerRequestor: most(-1)}, "quotas.pendingPerRequestor: -1 is negative"},
		{Quotas{HeldPerRequestor: most(-2)}, "quotas.heldPerRequestor: -2 is negative"},
		{Quotas{HeldPerRequestor: most(0)}, "quotas.heldPerRequestor: 0 is refused: requests would wait for ever"},
		{Quotas{Requestors: map[string]RequestorQuota{"a": {Held: most(1)}}}, `quotas.requestors.a: "a" has 1 characters`},
		{Quotas{Requestors: map[string]RequestorQuota{"sre": {}}}, "quotas.requestors.sre: pending or held is required"},
		{Quotas{Requestors: map[string]RequestorQuota{"sre": {Held: most(0)}}}, "quotas.requestors.sre.held: 0 is refused"},
		{Quotas{Requestors: map[string]RequestorQuota{"sre": {Pending: most(-1)}}}, "quotas.requestors.sre.pending: -1 is negative"},
		{Quotas{Requestors: many}, "quotas.requestors: has 201: want 200 at most"},
	} {
		if err := quota(c.quotas).Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.quotas, err, c.want)
		}
	}
	if err := quota(Quotas{PendingPerRequestor: most(0), HeldPerRequestor: most(1)}).Validate(); err != nil {
		t.Error(err)
	}
}

// Limits without quotas are written as they were before there were any.
func TestQuotasAreLeftOutWhereThereAreNone(t *testing.T) {
	for _, q := range []Quotas{{}, {Requestors: map[string]RequestorQuota{}}} {
		text, err := json.Marshal(Limits{MaxParallel: Count(1), Quotas: q})
		if err != nil || string(text) != `{"maxParallel":1}` {
			t.Errorf("%s, %v", text, err)
		}
	}
}
