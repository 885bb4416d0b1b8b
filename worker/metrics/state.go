package metrics

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock/activities/cluster"
	"drydock/api"
	"drydock/rules/schedule"
)

const (
	// readWithin bounds one reading, and waitFor how long a scrape waits for one that is under way: it tells what was read
	// before where that takes longer.
	readWithin = 10 * time.Second
	waitFor    = 3 * time.Second
	// shownFor is how old a reading may be that is still shown.
	shownFor = 5 * time.Minute
	// phaseCountsFor is how old the counts of a watch may be; one looks every 10 s.
	phaseCountsFor = 40 * time.Second
)

// Options are what the state's metrics need.
type Options struct {
	Source Source
	// Every is how long a reading is shown before the next scrape reads anew.
	Every time.Duration
	// Groups are the names of the groups in the worker's configuration.
	Groups      []string
	PhaseCounts PhaseCounts
	Logger      *slog.Logger
}

// PhaseCounts are the counts of maintenances that hold a slot, by what they do.
type PhaseCounts interface {
	Latest(within time.Duration, now time.Time) (held map[cluster.HeldIn]int, ok bool)
}

// source is what the state is read from.
type source interface {
	read(ctx context.Context) (reading, error)
}

// State tells what the scheduler and Temporal's lists know. It asks only when it is scraped, one reading at a time, and
// keeps each for a while: many scrapes cost no more than one.
type State struct {
	options Options
	source  source
	now     func() time.Time

	mu sync.Mutex
	// latest is the last that succeeded, at; tried is when one was begun last, and failed that it failed.
	latest    reading
	at, tried time.Time
	took      time.Duration
	failed    bool
	// under is closed when the reading that is under way ends; nil where none is.
	under chan struct{}
}

// NewState registers the metrics of the state.
func NewState(registry prometheus.Registerer, o Options) *State {
	s := &State{options: o, source: o.Source, now: time.Now}
	registry.MustRegister(s)
	return s
}

// Describe is the collector's.
func (s *State) Describe(to chan<- *prometheus.Desc) {
	for _, d := range stateDescs {
		to <- d
	}
}

// Collect is the collector's: it tells the latest reading, after it had the next one made if it is time.
func (s *State) Collect(to chan<- prometheus.Metric) {
	s.refresh()
	s.mu.Lock()
	r, at, took, failed := s.latest, s.at, s.took, s.failed
	s.mu.Unlock()
	now := s.now()
	to <- prometheus.MustNewConstMetric(descSuccess, prometheus.GaugeValue, flag(!failed && !at.IsZero()))
	if at.IsZero() {
		return
	}
	to <- prometheus.MustNewConstMetric(descAge, prometheus.GaugeValue, now.Sub(at).Seconds())
	to <- prometheus.MustNewConstMetric(descTook, prometheus.GaugeValue, took.Seconds())
	if now.Sub(at) > shownFor {
		return
	}
	held, _ := s.options.PhaseCounts.Latest(phaseCountsFor, now)
	teller{to: to, reading: r, groups: s.options.Groups, now: now}.tell(held)
}

// refresh has a reading made if it is time for one, and waits for it a little.
func (s *State) refresh() {
	s.mu.Lock()
	if s.under == nil && s.now().Sub(s.tried) >= s.options.Every {
		s.under, s.tried = make(chan struct{}), s.now()
		go s.make(s.under)
	}
	under := s.under
	s.mu.Unlock()
	if under == nil {
		return
	}
	select {
	case <-under:
	case <-time.After(waitFor):
	}
}

func (s *State) make(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	began := s.now()
	r, err := s.source.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under = nil
	if err != nil {
		if !s.failed {
			s.options.Logger.Warn("the state for metrics could not be read; trying again with further scrapes", "error", err)
		}
		s.failed = true
		return
	}
	s.failed, s.latest, s.at, s.took = false, r, began, s.now().Sub(began)
}

// teller makes metrics of one reading.
type teller struct {
	reading
	to     chan<- prometheus.Metric
	groups []string
	now    time.Time
}

func (t teller) gauge(d *prometheus.Desc, value float64, labels ...string) {
	t.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (t teller) tell(held map[cluster.HeldIn]int) {
	t.maintenances(held)
	t.pending()
	t.slots()
	for _, phase := range []api.PlanPhase{api.PlanRunning, api.PlanPaused} {
		t.gauge(descPlans, float64(t.plans[phase]), string(phase))
	}
	t.gauge(descChecks, float64(t.checks))
	t.gauge(descRemediations, float64(t.remediations))
	for _, stray := range t.summary.Strays {
		t.gauge(descStrays, float64(stray.Count), string(stray.Kind))
	}
	t.gauge(descFreezes, float64(t.summary.Freezes-t.summary.FreezesRunning), "grants")
	t.gauge(descFreezes, float64(t.summary.FreezesRunning), "running")
	t.gauge(descRebuilding, flag(t.summary.Rebuilding))
	trouble := 0.0
	if since := t.summary.TroubleSince; since != nil {
		trouble = max(0, t.now.Sub(*since).Seconds())
	}
	t.gauge(descTrouble, trouble)
}

// maintenances tells them by phase and group. Who waits is known to the scheduler as far as a slot was asked for, and the
// rest of those that run is Pending too. What holders do is known to the worker whose watch runs alone.
func (t teller) maintenances(held map[cluster.HeldIn]int) {
	counts := map[cluster.HeldIn]int{}
	asking := 0
	for _, p := range t.summary.Pending {
		if p.Kind != schedule.KindMaintenance {
			continue
		}
		counts[cluster.HeldIn{Phase: api.Pending, Group: t.group(p.Group)}] += p.Count
		asking += p.Count
	}
	counts[cluster.HeldIn{Phase: api.AwaitingApproval, Group: Other}] = t.awaiting
	holders := t.summary.Slots.Used + t.summary.Remediations.Used
	counts[cluster.HeldIn{Phase: api.Pending, Group: Other}] += max(0, t.reading.maintenances-t.awaiting-holders-asking)
	if holders > 0 {
		for in, n := range held {
			counts[cluster.HeldIn{Phase: in.Phase, Group: t.group(in.Group)}] += n
		}
	}
	for _, phase := range api.Phases {
		if phase.Ended() {
			continue
		}
		for _, group := range append(slices.Clone(t.groups), Other) {
			t.gauge(descMaintenances, float64(counts[cluster.HeldIn{Phase: phase, Group: group}]), string(phase), group)
		}
	}
}

// group is the label of a group; that of a node which is in none is Other.
func (t teller) group(name string) string { return among(t.groups, name) }

func (t teller) pending() {
	known := []string{Other} // what a later build's scheduler may say
	for _, code := range schedule.Codes {
		known = append(known, string(code))
	}
	byReason := map[string]int{}
	for _, p := range t.summary.Pending {
		byReason[among(known, string(p.Code))] += p.Count
	}
	for _, reason := range known {
		t.gauge(descPending, float64(byReason[reason]), reason)
	}
	oldest := 0.0
	if since := t.summary.OldestPending; since != nil {
		oldest = max(0, t.now.Sub(*since).Seconds())
	}
	t.gauge(descOldest, oldest)
}

func (t teller) slots() {
	sum := t.summary
	t.gauge(descSlots, float64(sum.Slots.Used))
	t.limit(descSlotsLimit, sum.Slots)
	t.gauge(descRepairSlots, float64(sum.Remediations.Used))
	t.limit(descRepairSlotsLimit, sum.Remediations)
	t.gauge(descControlPlane, float64(sum.ControlPlane.Used))
	if sum.ObservedAt != nil {
		t.gauge(descNodes, float64(sum.Nodes))
		t.gauge(descUnavailable, float64(sum.Unavailable.Used))
	}
	t.limit(descUnavailableLimit, sum.Unavailable)
	for _, g := range sum.Groups {
		if slices.Contains(t.groups, g.Name) {
			t.gauge(descGroupSlots, float64(g.Slots.Used), g.Name)
			t.limit(descGroupSlotsLimit, g.Slots, g.Name)
		}
	}
}

// limit tells a limit, unless it is not known.
func (t teller) limit(d *prometheus.Desc, u schedule.Use, labels ...string) {
	switch {
	case u.Unlimited:
		t.gauge(d, math.Inf(1), labels...)
	case u.Limit != nil:
		t.gauge(d, float64(*u.Limit), labels...)
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
