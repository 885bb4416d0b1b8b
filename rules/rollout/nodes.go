package rollout

import (
	"cmp"
	"slices"
	"strings"
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

// Over tells that nothing is done to a node of that state any more.
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
}

// Ending tells that the node is back, and its maintenance has still to end.
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

// Sort puts nodes into the order in which a plan takes them.
func Sort(order string, nodes []Node) {
	slices.SortStableFunc(nodes, func(a, b Node) int {
		switch order {
		case ByZone:
			return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.Name, b.Name))
		case FewestPods:
			return cmp.Or(cmp.Compare(a.Pods, b.Pods), strings.Compare(a.Name, b.Name))
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Match brings nodes up to date with those that a plan matches now. New ones are added, those that do not match any more
// are gone unless something was begun or done, and those that match again wait again. It tells how many came and went.
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
