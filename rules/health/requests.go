package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
)

// maxPausers bounds the pauses of people.
const maxPausers = 50

// Pause keeps anything new from beginning until the same by resumes.
func (s *State) Pause(by, why string, at time.Time) error {
	if strings.TrimSpace(by) == "" {
		return fmt.Errorf("by: required: the same one has to resume")
	}
	pauses := slices.DeleteFunc(slices.Clone(s.Pauses), func(p Pause) bool { return p.By == by })
	if len(pauses) >= maxPausers {
		return fmt.Errorf("%d pauses are in force: no more are taken", len(pauses))
	}
	s.Pauses = append(pauses, Pause{By: bounds.Cut(by, maxShort), Why: bounds.Cut(why, bounds.Text), At: at})
	return nil
}

// Resume withdraws the pause of somebody.
func (s *State) Resume(of string) error {
	rest := slices.DeleteFunc(slices.Clone(s.Pauses), func(p Pause) bool { return p.By == of })
	if len(rest) == len(s.Pauses) {
		var others []string
		for _, p := range s.Pauses {
			others = append(others, fmt.Sprintf("%q", p.By))
		}
		if len(others) == 0 {
			return fmt.Errorf("%q has not paused the check, nor has anybody else by a message: pauseRequests of its spec are changed by configure", of)
		}
		return fmt.Errorf("%q has not paused the check: those who have are %s", of, strings.Join(others, ", "))
	}
	s.Pauses = rest
	return nil
}

// Confirm releases a recovered node from whatever healthyDelay holds its remediation.
func (s *State) Confirm(node, by string) error {
	i, found := s.find(node)
	switch {
	case strings.TrimSpace(by) == "":
		return fmt.Errorf("by: required: somebody has to answer for the node")
	case !found || s.Nodes[i].Remediation == nil:
		return fmt.Errorf("node: %.300q is not being remediated: there is nothing to confirm", node)
	case s.Nodes[i].Unseen || !s.Seen.Known:
		return fmt.Errorf("node: nothing is known of %q yet: try again in a minute", node)
	case len(s.Nodes[i].Matches) > 0:
		return fmt.Errorf("node: %q has an unhealthy condition: only a node that has recovered can be confirmed", node)
	}
	s.Nodes = slices.Clone(s.Nodes)
	s.Nodes[i].ConfirmedBy = bounds.Cut(by, maxShort)
	return nil
}

// Reconfigured follows a change of the check's spec. What was seen with another selector, or other conditions or groups, says
// nothing any more: the result reports whether everything is to be seen anew.
func (s *State) Reconfigured(from, to Spec) (anew bool) {
	same := sameJSON(from.Selector, to.Selector) && sameJSON(from.UnhealthyConditions, to.UnhealthyConditions) &&
		sameJSON(groupBy(from), groupBy(to))
	if same {
		return false
	}
	s.Forget()
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Matches, s.Nodes[i].Unseen = nil, true
	}
	return true
}

func groupBy(s Spec) []string {
	if s.Groups == nil {
		return nil
	}
	return s.Groups.By
}
