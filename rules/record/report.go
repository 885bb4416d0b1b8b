package record

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/spec"
)

// Report is what many records say together.
type Report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Maintenances counts those that ended from Since on and before Until, Nodes the nodes they were of.
	Maintenances int        `json:"maintenances"`
	Nodes        int        `json:"nodes"`
	Ends         []EndCount `json:"ends"`
	// Ended are how many ended in each of the parts of the time, the first at Since. Each part is Every long, but for the last.
	Ended []int         `json:"ended"`
	Every spec.Duration `json:"every"`
	// Total is about the whole of each maintenance, Phases about each phase in the order in which they are gone through.
	Total    *Spread   `json:"total,omitempty"`
	Phases   []Spread  `json:"phases"`
	Failures []Failure `json:"failures"`
	// FailuresOnTheWay are those after which somebody decided how to go on, the latest first; WithFailures counts the
	// maintenances that had one, however they ended.
	FailuresOnTheWay []FailureOnTheWay `json:"failuresOnTheWay,omitempty"`
	WithFailures     int               `json:"withFailures,omitempty"`
	// Refused failed before anything was done, such as for a wrong input: they count as no maintenances.
	Refused []Failure `json:"refused,omitempty"`
	// Blockers are all that were in the way, those first that were for the longest time.
	Blockers []BlockerTotal `json:"blockers"`
}

// EndCount is how many maintenances ended in a phase.
type EndCount struct {
	Phase        string `json:"phase"`
	Maintenances int    `json:"maintenances"`
}

// Spread is how long something took. Of one maintenance all stays in a phase count together, and maintenances that never
// were in it do not count. A percentile is the nearest rank: the shortest time that at least so many percent of the
// maintenances did not exceed, and so always one that was measured.
type Spread struct {
	Phase        string        `json:"phase,omitempty"`
	Maintenances int           `json:"maintenances"`
	P50          spec.Duration `json:"p50"`
	P95          spec.Duration `json:"p95"`
	Longest      spec.Duration `json:"longest"`
}

// Failure is a maintenance that neither completed nor was cancelled.
type Failure struct {
	Node       string    `json:"node"`
	Cluster    string    `json:"cluster,omitempty"`
	Requestor  string    `json:"requestor"`
	Phase      string    `json:"phase"`
	Reason     string    `json:"reason"`
	EndedAt    time.Time `json:"endedAt"`
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId"`
}

// FailureOnTheWay is work, or a validation, that failed and kept its node out of service until somebody decided.
type FailureOnTheWay struct {
	Failure
	At time.Time `json:"at"`
	// End is how the maintenance ended all the same.
	End string `json:"end"`
}

// BlockerTotal is what one workload cost: the pods of one owner count together, since their names change whenever they
// are made anew.
type BlockerTotal struct {
	// What is "namespace/Kind name" of the pods' owner, or "namespace/name" of a bare pod.
	What string `json:"what"`
	// Reason is the one for which it was in the way for the longest time.
	Reason       string        `json:"reason"`
	Maintenances int           `json:"maintenances"`
	Blocked      spec.Duration `json:"blocked"`
}

// inOrder are the phases in the order in which a maintenance goes through them; ends have no duration.
var inOrder = []string{
	"AwaitingApproval", "Pending", "Scheduled", "Cordoning", "Cordoned", "WaitingForPods", "Draining", "Ready", "RequestorFailed", "Validating", "Releasing",
}

var ends = []string{"Completed", "Failed", "Cancelled", "NodeGone"}

// Summarize reports on the maintenances that ended from since on and before until. Of several records of one maintenance
// the first one counts.
func Summarize(records []Record, since, until time.Time) Report {
	ended, refused := endedIn(records, since, until)
	report := Report{Since: since, Until: until, Maintenances: len(ended), Failures: failuresOf(ended), Blockers: blockersOf(ended)}
	if len(refused) > 0 {
		report.Refused = failuresOf(refused)
	}
	report.FailuresOnTheWay, report.WithFailures = onTheWay(ended)
	nodes, byEnd := map[string]bool{}, map[string]int{}
	for _, r := range ended {
		nodes[r.Cluster+"/"+r.Node] = true
		byEnd[r.Phase]++
	}
	report.Nodes = len(nodes)
	report.Ends = make([]EndCount, 0, len(byEnd))
	for _, phase := range known(ends, byEnd) {
		report.Ends = append(report.Ends, EndCount{phase, byEnd[phase]})
	}
	report.Total, report.Phases = spreadsOf(ended)
	report.Ended, report.Every = endedOver(ended, since, until)
	return report
}

// mostParts is how many parts a report's time has at most.
const mostParts = 60

// endedOver counts the ends in parts of the time: in hours, or where these are too many, in days, or in several days.
func endedOver(ended []Record, since, until time.Time) (counts []int, every spec.Duration) {
	const day = 24 * time.Hour
	all, part := max(until.Sub(since), 1), time.Hour
	if all > mostParts*time.Hour {
		part = max((all/mostParts + day - 1).Truncate(day), day)
	}
	counts = make([]int, int((all+part-1)/part))
	for _, r := range ended {
		counts[int(r.EndedAt.Sub(since)/part)]++
	}
	return counts, spec.Duration(part)
}

// endedIn are the maintenances that ended from since on and before until, and those that were refused then.
func endedIn(records []Record, since, until time.Time) (ended, refused []Record) {
	for _, r := range Distinct(records) {
		switch {
		case r.Plan != nil, r.Remediation != nil: // their maintenances have records of their own
		case !r.Ended() || r.EndedAt.Before(since) || !r.EndedAt.Before(until):
		case r.Refused():
			refused = append(refused, r)
		default:
			ended = append(ended, r)
		}
	}
	return ended, refused
}

// lastedIn is how long a maintenance was in each phase but its end, all stays together.
func lastedIn(r Record) map[string]time.Duration {
	lasted := map[string]time.Duration{}
	for _, stay := range Durations(r) {
		if !slices.Contains(ends, stay.Phase) {
			lasted[stay.Phase] += stay.Lasts
		}
	}
	return lasted
}

func spreadsOf(records []Record) (total *Spread, phases []Spread) {
	byPhase, totals := map[string][]time.Duration{}, []time.Duration(nil)
	for _, r := range records {
		totals = append(totals, Total(r))
		for phase, d := range lastedIn(r) {
			byPhase[phase] = append(byPhase[phase], d)
		}
	}
	phases = make([]Spread, 0, len(byPhase))
	for _, phase := range known(inOrder, byPhase) {
		phases = append(phases, spread(phase, byPhase[phase]))
	}
	if len(totals) > 0 {
		s := spread("", totals)
		total = &s
	}
	return total, phases
}

// known are the keys in the given order, and after them by name those that it does not have.
func known[T any](order []string, of map[string]T) []string {
	var keys []string
	for key := range of {
		keys = append(keys, key)
	}
	rank := func(key string) int {
		if i := slices.Index(order, key); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return keys
}

func spread(phase string, took []time.Duration) Spread {
	slices.Sort(took)
	return Spread{
		Phase: phase, Maintenances: len(took),
		P50: spec.Duration(percentile(took, 50)), P95: spec.Duration(percentile(took, 95)), Longest: spec.Duration(took[len(took)-1]),
	}
}

// percentile is the nearest rank of sorted values; there is at least one.
func percentile(sorted []time.Duration, percent int) time.Duration {
	rank := (percent*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}

// failuresOf are the failures, the latest first.
func failuresOf(records []Record) []Failure {
	failures := []Failure{}
	for _, r := range records {
		if r.Phase == "Completed" || r.Phase == "Cancelled" {
			continue
		}
		failures = append(failures, failureOf(r, r.Phase, r.Failure))
	}
	slices.SortFunc(failures, func(a, b Failure) int {
		return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.RunID, b.RunID))
	})
	return failures
}

func failureOf(r Record, phase, reason string) Failure {
	return Failure{
		Node: r.Node, Cluster: r.Cluster, Requestor: r.Requestor, Phase: phase, Reason: cmp.Or(reason, "no reason is on record"),
		EndedAt: r.EndedAt, WorkflowID: r.WorkflowID, RunID: r.RunID,
	}
}

// onTheWay are the failures that were not the end, and how many of the maintenances had one.
func onTheWay(records []Record) (all []FailureOnTheWay, maintenances int) {
	for _, r := range records {
		before := len(all)
		for i, p := range r.Phases {
			if p.Phase == "RequestorFailed" && (i == 0 || r.Phases[i-1].Phase != p.Phase) {
				all = append(all, FailureOnTheWay{Failure: failureOf(r, p.Phase, p.Message), At: p.At, End: r.Phase})
			}
		}
		for _, s := range r.States {
			if s.State == "MaintenanceIncomplete" && phaseAt(r, s.At) == "Validating" {
				all = append(all, FailureOnTheWay{Failure: failureOf(r, "Validating", s.Message), At: s.At, End: r.Phase})
			}
		}
		if len(all) > before {
			maintenances++
		}
	}
	slices.SortFunc(all, func(a, b FailureOnTheWay) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Reason, b.Reason))
	})
	return all, maintenances
}

// phaseAt is the phase that a maintenance was in.
func phaseAt(r Record, at time.Time) (phase string) {
	for _, p := range r.Phases {
		if !p.At.After(at) {
			phase = p.Phase
		}
	}
	return phase
}

func blockersOf(records []Record) []BlockerTotal {
	type sum struct {
		maintenances int
		blocked      time.Duration
		byReason     map[string]time.Duration
	}
	sums := map[string]*sum{}
	for _, r := range records {
		here := map[string]bool{}
		for _, b := range r.Blockers {
			what := workload(b)
			s := sums[what]
			if s == nil {
				s = &sum{byReason: map[string]time.Duration{}}
				sums[what] = s
			}
			if !here[what] {
				here[what] = true
				s.maintenances++
			}
			blocked := Blocked(r, b)
			s.blocked += blocked
			s.byReason[b.Reason] += blocked
		}
	}
	totals := make([]BlockerTotal, 0, len(sums))
	for what, s := range sums {
		reasons := known(nil, s.byReason)
		worst := slices.MaxFunc(reasons, func(a, b string) int { return cmp.Compare(s.byReason[a], s.byReason[b]) })
		totals = append(totals, BlockerTotal{What: what, Reason: worst, Maintenances: s.maintenances, Blocked: spec.Duration(s.blocked)})
	}
	slices.SortFunc(totals, func(a, b BlockerTotal) int { return cmp.Or(cmp.Compare(b.Blocked, a.Blocked), mostOften(a, b)) })
	return totals
}

func mostOften(a, b BlockerTotal) int {
	return cmp.Or(cmp.Compare(b.Maintenances, a.Maintenances), cmp.Compare(b.Blocked, a.Blocked), cmp.Compare(a.What, b.What))
}

// workload is what people would look for to mend it.
func workload(b Blocker) string {
	namespace, _, found := strings.Cut(b.Pod, "/")
	if b.Owner == "" || !found {
		return b.Pod
	}
	return namespace + "/" + b.Owner
}
