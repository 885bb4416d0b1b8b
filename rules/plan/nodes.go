package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// State is where a node of a plan is.
type State string

// The states of a node. Waiting is the zero value.
const (
	Waiting State = ""
	// Running: its maintenance runs.
	Running State = "running"
	// Held: its maintenance waits for somebody's decision, after the work or the validation failed.
	Held State = "held"
	// Done: its maintenance is completed, and the node back in service. It has its RunID until the maintenance has ended.
	Done   State = "done"
	Failed State = "failed"
	// Skipped: somebody has left it out.
	Skipped State = "skipped"
	// Gone: it does not exist, or the plan does not match it any more.
	Gone State = "gone"
)

// Over reports whether the state is an end: the plan does nothing more to the node.
func (s State) Over() bool { return s == Done || s == Failed || s == Skipped || s == Gone }

// Word is the state in words.
func (s State) Word() string {
	if s == Waiting {
		return "waiting"
	}
	return string(s)
}

// Facts are what is known of a node that a plan matches.
type Facts struct {
	Name string `json:"name"`
	Zone string `json:"zone,omitempty"`
	// Pods are those that a drain would have to move.
	Pods int `json:"pods,omitempty"`
}

// Node is a node of a plan.
type Node struct {
	Facts
	State State `json:"state,omitempty"`
	// Since is when it came into its state, in seconds since 1970.
	Since int64 `json:"since,omitempty"`
	// Tries counts the maintenances that were begun.
	Tries int `json:"tries,omitempty"`
	// NotBefore is when a node that was blocked comes back, in seconds since 1970.
	NotBefore int64 `json:"notBefore,omitempty"`
	// RunID is the first run of its maintenance, as long as that matters.
	RunID string `json:"runId,omitempty"`
	Note  string `json:"note,omitempty"`
	// Forgiven: somebody resumed the plan who knew that it had failed. It holds until the node fails anew, or is begun anew.
	Forgiven bool `json:"forgiven,omitempty"`
	// Standing is how far the drain of a node is whose plan is of strategy AllAtOnce; nil before its maintenance has begun.
	Standing *Standing `json:"standing,omitempty"`
}

// Standing is how far the drain of a node is.
type Standing struct {
	// Phase is that of its maintenance.
	Phase string `json:"phase,omitempty"`
	// Targets is the place of its targets among those that the plan has met, counted from 1; 0 has none.
	Targets    int  `json:"targets,omitempty"`
	Pending    int  `json:"pending,omitempty"`
	Evacuating int  `json:"evacuating,omitempty"`
	Drained    bool `json:"drained,omitempty"`
}

// Forgive lets the failures that are known now count no more. Who was forgiven before stays so.
func Forgive(nodes []Node) {
	for i := range nodes {
		nodes[i].Forgiven = nodes[i].Forgiven || nodes[i].State == Held || nodes[i].State == Failed
	}
}

// unforgiven counts the failures that nobody has forgiven.
func unforgiven(nodes []Node) int {
	n := 0
	for i := range nodes {
		if (nodes[i].State == Held || nodes[i].State == Failed) && !nodes[i].Forgiven {
			n++
		}
	}
	return n
}

// Ending reports whether the node is back in service while its maintenance still has to end.
func (n Node) Ending() bool { return n.State == Done && n.RunID != "" }

// Counts are the nodes of a plan by their states. Total are those that it matches.
type Counts struct {
	Total   int `json:"total"`
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Held    int `json:"held"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Gone    int `json:"gone"`
}

// Failures are the nodes that failed, held ones included.
func (c Counts) Failures() int { return c.Held + c.Failed }

// AfterCanary says what became of the canary, of a plan that goes on after it.
func (c Counts) AfterCanary() string {
	if c.Failures() == 0 {
		return "the canary has passed"
	}
	return fmt.Sprintf("the canary is over: %d done, %d failed", c.Done, c.Failures())
}

// Count counts nodes.
func Count(nodes []Node) Counts {
	var c Counts
	for i := range nodes {
		switch nodes[i].State {
		case Waiting:
			c.Waiting++
		case Running:
			c.Running++
		case Held:
			c.Held++
		case Done:
			c.Done++
		case Failed:
			c.Failed++
		case Skipped:
			c.Skipped++
		case Gone:
			c.Gone++
		}
	}
	c.Total = len(nodes) - c.Gone
	return c
}

// Forget leaves out nodes that are gone, those first that have been for the longest, where there are more than so many.
func Forget(nodes []Node, most int) []Node {
	var gone []int
	for i := range nodes {
		if nodes[i].State == Gone {
			gone = append(gone, i)
		}
	}
	slices.SortStableFunc(gone, func(a, b int) int { return cmp.Compare(nodes[a].Since, nodes[b].Since) })
	drop := map[int]bool{}
	for _, i := range gone[:max(0, min(len(gone), len(nodes)-most))] {
		drop[i] = true
	}
	left := make([]Node, 0, len(nodes)-len(drop))
	for i := range nodes {
		if !drop[i] {
			left = append(left, nodes[i])
		}
	}
	return left
}

// Match brings nodes up to date with those that a plan matches now. New ones are added, those that do not match any more
// are gone unless something was begun or done, and those that match again wait again. It returns how many came and went.
func Match(order string, nodes []Node, matching []Facts, now time.Time) (matched []Node, came, went int) {
	known := make(map[string]int, len(nodes))
	for i := range nodes {
		known[nodes[i].Name] = i
	}
	matched = slices.Clone(nodes)
	there := make([]bool, len(nodes))
	for _, facts := range matching {
		i, ok := known[facts.Name]
		if !ok {
			came++
			matched = append(matched, Node{Facts: facts, Since: now.Unix()})
			continue
		}
		there[i] = true
		matched[i].Facts = facts
		if matched[i].State == Gone {
			came++
			matched[i] = Node{Facts: facts, Since: now.Unix()}
		}
	}
	for i := range there {
		if !there[i] && matched[i].State == Waiting {
			went++
			matched[i].State, matched[i].Since, matched[i].Note = Gone, now.Unix(), "it is not matched any more"
		}
	}
	Sort(order, matched)
	return matched, came, went
}

// MatchTogether is Match for a plan of strategy AllAtOnce. A node that it holds stays until the plan is completed, and one
// whose maintenance has ended by itself is gone where it does not match any more: it is begun anew where it matches again.
func MatchTogether(nodes []Node, matching []Facts, now time.Time) (matched []Node, came, went int) {
	there := make(map[string]bool, len(matching))
	for _, facts := range matching {
		there[facts.Name] = true
	}
	ended := slices.Clone(nodes)
	for i := range ended {
		if n := &ended[i]; n.State != Gone && n.State.Over() && !there[n.Name] {
			n.State, n.Standing, n.RunID = Waiting, nil, "" // as one that was never begun
		}
	}
	return Match(ByName, ended, matching, now)
}
