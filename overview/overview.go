// Package overview reads what goes on in a cluster, part by part: one that cannot be read does not keep the others from being shown.
package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/visible"
	"drydock.dev/drydock/views"
)

// Within bounds how long the parts are waited for: they are read at the same time.
const Within = 30 * time.Second

const (
	// listed bounds the maintenances that are found, asked those that are asked for their status.
	listed = 1000
	asked  = 200
	// askedOthers bounds the plans, and the health checks, that are asked for theirs.
	askedOthers = 50
	// shown bounds each list.
	shown = 20
)

// Explainer makes of an error one that its reader can do something about.
type Explainer interface{ Explain(err error) error }

// AsIs leaves errors as they are.
type AsIs struct{}

// Explain implements Explainer.
func (AsIs) Explain(err error) error { return err }

// Status is what goes on in the cluster of a client.
func Status(ctx context.Context, c *client.Client, now time.Time, e Explainer) api.ClusterStatus {
	s := read(ctx, temporal{c}, now, e)
	s.Cluster = c.Cluster()
	return s
}

// Unknown reports whether nothing could be read.
func Unknown(s api.ClusterStatus) bool {
	return s.Slots == nil && s.Maintenances == nil && s.Plans == nil && s.HealthChecks == nil && s.Profiles == nil
}

// reading is a status that is being read.
type reading struct {
	Explainer
	source source
	status api.ClusterStatus
	// silent is why nobody is asked: no worker answers.
	silent error

	mu sync.Mutex
	// attention is what each part has, in the order of the parts.
	attention map[string][]api.Attention
}

// The parts, in the order in which they are shown.
const (
	partScheduler    = "scheduler"
	partMaintenances = "maintenances"
	partPlans        = "plans"
	partChecks       = "health checks"
	partProfiles     = "profiles"
)

var parts = []string{partScheduler, partMaintenances, partPlans, partChecks, partProfiles}

func read(ctx context.Context, from source, now time.Time, e Explainer) api.ClusterStatus {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	r := &reading{Explainer: e, source: from, status: api.ClusterStatus{At: now.UTC()}, attention: map[string][]api.Attention{}}
	// What the scheduler says tells which maintenances to ask, and its silence that there is nobody to ask.
	state, known := r.scheduler(ctx)
	var rest sync.WaitGroup
	rest.Go(func() { r.maintenances(ctx, state, known) })
	rest.Go(func() { r.plans(ctx) })
	rest.Go(func() { r.checks(ctx) })
	rest.Go(func() { r.profiles(ctx) })
	rest.Wait()
	r.status.Attention = []api.Attention{}
	for _, part := range parts {
		r.status.Attention = append(r.status.Attention, r.attention[part]...)
	}
	r.status.Attention, r.status.MoreAttention = first(r.status.Attention)
	slices.SortFunc(r.status.Unread, func(a, b api.UnreadPart) int {
		return cmp.Compare(slices.Index(parts, a.Part), slices.Index(parts, b.Part))
	})
	return r.status
}

// first are the first of a list, with how many are left out.
func first[T any](all []T) (some []T, more int) {
	some = all[:min(shown, len(all))]
	return some, len(all) - len(some)
}

// unread says why a part is missing.
func (r *reading) unread(part string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := visible.Line(r.Explain(err).Error())
	if errors.Is(err, context.DeadlineExceeded) {
		why = fmt.Sprintf("no answer within %s", Within)
	}
	r.status.Unread = append(r.status.Unread, api.UnreadPart{Part: part, Why: why})
}

// needs adds what needs attention.
func (r *reading) needs(part string, a ...api.Attention) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attention[part] = append(r.attention[part], a...)
}

func (r *reading) scheduler(ctx context.Context) (state api.State, known bool) {
	const who = "the scheduler"
	state, err := r.source.state(ctx, shown, schedule.GangTooLarge) // such a gang needs a person, wherever it is in the queue
	if err != nil {
		var silent *client.NoWorkerError
		if errors.As(err, &silent) {
			r.silent, r.status.NoWorker = err, true
		}
		r.unread(partScheduler, err)
		return state, false
	}
	waiting := append([]api.PendingRequest{}, state.Pending[:min(shown, len(state.Pending))]...)
	s := &api.ClusterSlots{
		Limits: state.Limits, Freezes: state.Freezes, Rebuilding: state.Rebuilding, Nodes: state.Nodes, Unavailable: state.Unavailable,
		UnavailableOthers: state.UnavailableOthers, ObservedAt: state.ObservedAt, HeldNodes: state.HeldNodes(),
		Waiting: waiting, WaitingAll: state.PendingAll,
	}
	assumed := 0
	for _, h := range state.Holders {
		if h.IsMarked() {
			s.InUse++
		}
		if h.Assumed {
			assumed++
		}
	}
	r.status.Slots = s
	doctor := []string{"drydock doctor"}
	if t := state.Trouble; t != nil {
		r.needs(partScheduler, api.Attention{About: who, What: t.String(), Since: &t.Since, Next: doctor})
	}
	if state.Rebuilding {
		r.needs(partScheduler, api.Attention{About: who, What: "it grants no slots until it knows again who holds them", Next: doctor})
	}
	for _, f := range state.Freezes {
		what := "no slot is granted"
		if f.Running {
			what += ", and running maintenances are held"
		}
		r.needs(partScheduler, api.Attention{
			About: "freeze by " + f.By, What: what + colon(f.Reason), Since: &f.At, Next: []string{"drydock thaw --by " + quoted(f.By)},
		})
	}
	r.needs(partScheduler, tooLarge(state.Pending)...)
	if assumed > 0 {
		r.needs(partScheduler, api.Attention{About: who, What: number.Of(assumed, "slot") + " held by workflows that do not answer", Next: doctor})
	}
	if state.StraysAll > 0 {
		r.needs(partScheduler, api.Attention{About: "marks", What: number.Of(state.StraysAll, "node") + " with a mark of no maintenance that runs", Next: doctor})
	}
	return state, true
}

// tooLarge are the gangs that no end of a maintenance lets go: each once, not for each of its nodes.
func tooLarge(pending []api.PendingRequest) (all []api.Attention) {
	seen := map[string]bool{}
	for i := range pending {
		p := &pending[i]
		if p.Code != schedule.GangTooLarge || p.Gang == nil || seen[p.Gang.Name] {
			continue
		}
		seen[p.Gang.Name] = true
		plan, _, _ := strings.Cut(p.Gang.Name, "/") // the run follows, which tells a person nothing
		a := api.Attention{About: "gang " + plan, What: p.Reason, Since: &p.Created}
		if commands, limits := schedule.Raises(p.Reason); commands != "" {
			a.What, a.Next = "it has "+number.Of(p.Gang.Size, "node")+", more than limits allow by itself: "+limits, []string{commands}
		}
		all = append(all, a)
	}
	return all
}

// colon puts a colon before a text that is not empty.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// quoted is an argument as a shell takes it.
func quoted(arg string) string {
	if strings.ContainsFunc(arg, func(r rune) bool { return !strings.ContainsRune("@%+=:,./-_", r) && !isAlphanumeric(r) }) {
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return arg
}

func isAlphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func (r *reading) maintenances(ctx context.Context, state api.State, known bool) {
	all, err := r.source.maintenances(ctx, listed+1)
	if err != nil {
		r.unread(partMaintenances, err)
		return
	}
	m := &api.ClusterMaintenances{Running: min(len(all), listed), AtLeast: len(all) > listed, Phases: map[api.Phase]int{}}
	found := r.look(ctx, firstAsked(all[:m.Running], state))
	unasked := m.Running - len(found)
	several := nodesOfSeveral(all)
	var left int
	for _, v := range found {
		if !v.Running() {
			m.Running-- // it has ended since it was listed
			continue
		}
		if phase := v.Phase(); phase != "" {
			m.Phases[phase]++
		}
	}
	found = slices.DeleteFunc(found, func(v client.View) bool {
		// Who waits for a slot is in the scheduler's list.
		waits := known && v.Phase() == api.Pending && v.Status.Slot != nil && v.Status.Slot.GrantedAt == nil
		if waits {
			left++
		}
		return waits || !v.Running()
	})
	slices.SortStableFunc(found, func(a, b client.View) int {
		return cmp.Or(cmp.Compare(r.rank(a), r.rank(b)), plan.CompareNames(a.Node, b.Node), cmp.Compare(a.Requestor, b.Requestor))
	})
	for _, v := range found {
		if a, needed := attentionOf(v, several[v.Node], r.status.At); needed {
			r.needs(partMaintenances, a)
		}
	}
	firstFound, _ := first(found)
	m.First = client.Summaries(firstFound)
	m.More = m.Running - left - len(m.First)
	if known {
		// Those that wait for a slot and were not asked are in the scheduler's list all the same. Profiles and remediations are in it too.
		m.More -= min(unasked, max(0, state.PendingAll-left))
	}
	r.status.Maintenances = m
}

// firstAsked are the maintenances to ask: those that hold a slot, then the newest.
func firstAsked(all []client.Maintenance, state api.State) []client.Maintenance {
	holds := map[string]bool{}
	for _, h := range state.Holders {
		holds[h.RunID] = true
	}
	some := slices.Clone(all)
	slices.SortStableFunc(some, func(a, b client.Maintenance) int {
		switch {
		case holds[a.FirstRunID] == holds[b.FirstRunID]:
			return 0
		case holds[a.FirstRunID]:
			return -1
		default:
			return 1
		}
	})
	return some[:min(asked, len(some))]
}

// look asks maintenances, where there is somebody to answer.
func (r *reading) look(ctx context.Context, some []client.Maintenance) []client.View {
	unasked := make([]client.View, len(some))
	for i, m := range some {
		unasked[i] = client.View{Maintenance: m}
	}
	if r.silent != nil || len(some) == 0 {
		return unasked
	}
	found, err := r.source.look(ctx, some)
	if err != nil {
		r.unread(partMaintenances, err)
		return unasked
	}
	for _, v := range found {
		if v.Unanswered != nil {
			r.unread(partMaintenances, v.Unanswered)
			break
		}
	}
	return found
}

// nodesOfSeveral are the nodes of more than one maintenance.
func nodesOfSeveral(all []client.Maintenance) map[string]bool {
	seen, several := map[string]bool{}, map[string]bool{}
	for _, m := range all {
		several[m.Node] = seen[m.Node]
		seen[m.Node] = true
	}
	return several
}

// rank is the place of a maintenance in the list: first what waits for a person.
func (r *reading) rank(v client.View) int {
	if _, needed := attentionOf(v, false, r.status.At); needed {
		return 0
	}
	return 1 + len(api.Phases) - slices.Index(api.Phases, v.Phase())
}

// attentionOf is what a maintenance waits for a person for.
func attentionOf(v client.View, several bool, now time.Time) (a api.Attention, needed bool) {
	m := v.Known()
	requestor := ""
	if several {
		requestor = m.Requestor
	}
	next := views.Next(m, now, requestor)
	switch {
	case len(next) == 0, m.Phase == api.Pending, strings.HasPrefix(m.WaitingFor, api.WaitsForThaw):
		return a, false
	case m.Phase == api.Ready && m.StartedAt != nil: // somebody works on it
		return a, false
	}
	return api.Attention{About: m.Node, What: views.Progress(m), Since: m.Since, Next: next}, true
}
