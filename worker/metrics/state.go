package metrics

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

const (
	// readWithin bounds one reading, and waitFor how long a scrape waits for one that is under way: it shows the
	// reading before where that takes longer.
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

// State collects what the scheduler and Temporal's lists know. It reads only when it is scraped, one reading at a time, and
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
	// under is closed when the reading that is under way ends; nil if none is.
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

// Collect is the collector's: it shows the latest reading, and begins the next one first if that is due.
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
	gauges{to: to, reading: r, groups: s.options.Groups, now: now}.send(held)
}

// refresh starts a reading if one is due, and waits for it for a short time.
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

// gauges makes metrics of one reading.
type gauges struct {
	reading
	to     chan<- prometheus.Metric
	groups []string
	now    time.Time
}

func (g gauges) gauge(d *prometheus.Desc, value float64, labels ...string) {
	g.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (g gauges) send(held map[cluster.HeldIn]int) {
	g.maintenances(held)
	g.pending()
	g.slots()
	for _, phase := range []api.PlanPhase{api.PlanRunning, api.PlanPaused} {
		g.gauge(descPlans, float64(g.plans[phase]), string(phase))
	}
	g.gauge(descChecks, float64(g.checks))
	g.gauge(descRemediations, float64(g.remediations))
	for _, stray := range g.summary.Strays {
		g.gauge(descStrays, float64(stray.Count), string(stray.Kind))
	}
	g.gauge(descFreezes, float64(g.summary.Freezes-g.summary.FreezesRunning), "grants")
	g.gauge(descFreezes, float64(g.summary.FreezesRunning), "running")
	g.gauge(descRebuilding, flag(g.summary.Rebuilding))
	trouble := 0.0
	if since := g.summary.TroubleSince; since != nil {
		trouble = max(0, g.now.Sub(*since).Seconds())
	}
	g.gauge(descTrouble, trouble)
}

// maintenances counts them by phase and group. The scheduler knows those that have requested a slot; all others that run are Pending
// too. Only the worker whose watch runs knows what holders do.
func (g gauges) maintenances(held map[cluster.HeldIn]int) {
	counts := map[cluster.HeldIn]int{}
	asking := 0
	for _, p := range g.summary.Pending {
		if p.Kind != schedule.KindMaintenance {
			continue
		}
		counts[cluster.HeldIn{Phase: api.Pending, Group: g.group(p.Group)}] += p.Count
		asking += p.Count
	}
	counts[cluster.HeldIn{Phase: api.AwaitingApproval, Group: Other}] = g.awaiting
	holders := g.summary.Slots.Used + g.summary.Remediations.Used
	counts[cluster.HeldIn{Phase: api.Pending, Group: Other}] += max(0, g.reading.maintenances-g.awaiting-holders-asking)
	if holders > 0 {
		for in, n := range held {
			counts[cluster.HeldIn{Phase: in.Phase, Group: g.group(in.Group)}] += n
		}
	}
	for _, phase := range api.Phases {
		if phase.Ended() {
			continue
		}
		for _, group := range append(slices.Clone(g.groups), Other) {
			g.gauge(descMaintenances, float64(counts[cluster.HeldIn{Phase: phase, Group: group}]), string(phase), group)
		}
	}
}

// group is the label of a group; that of a node which is in none is Other.
func (g gauges) group(name string) string { return among(g.groups, name) }

func (g gauges) pending() {
	known := []string{Other} // what a later build's scheduler may say
	for _, code := range schedule.Codes {
		known = append(known, string(code))
	}
	byReason := map[string]int{}
	for _, p := range g.summary.Pending {
		byReason[among(known, string(p.Code))] += p.Count
	}
	for _, reason := range known {
		g.gauge(descPending, float64(byReason[reason]), reason)
	}
	oldest := 0.0
	if since := g.summary.OldestPending; since != nil {
		oldest = max(0, g.now.Sub(*since).Seconds())
	}
	g.gauge(descOldest, oldest)
}

func (g gauges) slots() {
	sum := g.summary
	g.gauge(descSlots, float64(sum.Slots.Used))
	g.limit(descSlotsLimit, sum.Slots)
	g.gauge(descRepairSlots, float64(sum.Remediations.Used))
	g.limit(descRepairSlotsLimit, sum.Remediations)
	g.gauge(descControlPlane, float64(sum.ControlPlane.Used))
	if sum.ObservedAt != nil {
		g.gauge(descNodes, float64(sum.Nodes))
		g.gauge(descUnavailable, float64(sum.Unavailable.Used))
	}
	g.limit(descUnavailableLimit, sum.Unavailable)
	for _, one := range sum.Groups {
		if slices.Contains(g.groups, one.Name) {
			g.gauge(descGroupSlots, float64(one.Slots.Used), one.Name)
			g.limit(descGroupSlotsLimit, one.Slots, one.Name)
		}
	}
}

// limit shows a limit, unless it is not known.
func (g gauges) limit(d *prometheus.Desc, u schedule.Use, labels ...string) {
	switch {
	case u.Unlimited:
		g.gauge(d, math.Inf(1), labels...)
	case u.Limit != nil:
		g.gauge(d, float64(*u.Limit), labels...)
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
