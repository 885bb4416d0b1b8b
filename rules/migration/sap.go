package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/state"
)

// sap is SAP's maintenance-controller: Drydock reads its file, its labels and its annotation as they are.
type sap struct{ given Given }

func (sap) Lease() string { return "" }

// Reads are none: all that there is of maintenance-controller is on the nodes, and in its file.
func (sap) Reads() []schema.GroupVersionResource { return nil }

func (s sap) Report(c Cluster) Report {
	r := Report{From: SAP, Claims: s.Claims(c)}
	states, unreadable := map[state.State]int{}, 0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		data, there := n.Annotations[state.DataAnnotation]
		if _, err := state.Read(data); err != nil {
			unreadable++
			r.Problems = append(r.Problems, fmt.Sprintf("node %s: the annotation %s: %v", n.Name, state.DataAnnotation, err))
		} else if there {
			states[state.State(n.Labels[state.StateLabel])]++
		}
	}
	for _, is := range slices.Sorted(maps.Keys(states)) {
		r.Found = append(r.Found, fmt.Sprintf("%s %s", number.Of(states[is], "node"), is))
	}
	if len(r.Found) == 0 && unreadable == 0 {
		r.Found = append(r.Found, "no node with the annotation "+state.DataAnnotation)
	}
	if len(s.given.File) == 0 {
		r.Problems = append(r.Problems, "--file: name maintenance-controller's configuration file, config/maintenance.yaml, to have it checked")
	}
	report := profile.Lint(s.given.File, s.given.Environment)
	if len(s.given.File) > 0 {
		for _, p := range report.Problems {
			r.Problems = append(r.Problems, p.Error())
		}
		for _, w := range report.Warnings {
			r.Without = append(r.Without, Setting{Of: w.Path, Becomes: w.Error()})
		}
		r.add(to("profiles.file: it is read as it is"), "config/maintenance.yaml", number.Of(len(s.profiles()), "profile"))
	}
	r.add(to("kept as they are: each profile goes on in its state"), state.ProfileLabel+", "+state.StateLabel+", "+state.DataAnnotation, "")
	r.input("worker.yaml", "Part of the worker's configuration", map[string]any{"profiles": map[string]any{"file": "/etc/drydock/maintenance.yaml"}})
	r.Take = []string{
		"drydock profile lint --allow-unset maintenance.yaml",
		"kubectl apply -f deploy/kubernetes/rbac-profiles.yaml",
		"# Give the worker the variables that maintenance-controller has, scale that to 0 replicas, and wait until its pod is gone.",
		"# Give the worker the file: profiles: {file: ...}.",
		"drydock profile list",
	}
	r.Back = []string{
		"# Take out of the file what lint warns of with \"to be able to go back\", then take profiles.file from the workers.",
		`temporal workflow count --query 'WorkflowType="ProfileTransition" AND ExecutionStatus="Running"'`,
		"# Once none runs, scale maintenance-controller up again. Labels and annotations are in its own form.",
	}
	return r
}

// profiles are those of the file, none where it is not right.
func (s sap) profiles() []profile.Profile {
	config, err := profile.Load(s.given.File, s.given.Environment)
	if err != nil {
		return nil
	}
	return config.Profiles
}

func (sap) Claims(c Cluster) (claims []Claim) {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		data, err := state.Read(n.Annotations[state.DataAnnotation])
		if err != nil {
			continue // the report says so
		}
		for _, name := range state.Profiles(n.Labels) {
			p := data.Profiles[name]
			claim := Claim{Node: n.Name, For: name, Asked: p.Transition.UTC(), State: string(p.Current), Out: p.Current == state.Maintenance}
			switch p.Current {
			case state.Maintenance:
				claim.Becomes = "stays there, until a transition out of it holds"
			case state.Required:
				claim.Becomes = "goes on when its checks hold"
			default:
				continue
			}
			claims = append(claims, claim)
		}
	}
	return claims
}

// Refusals decide with the file's own checks. A node that was just taken is judged as the one that it was before.
func (s sap) Refusals(c Cluster, asked []Claim) (map[string]string, error) {
	if len(s.given.File) == 0 {
		return nil, fmt.Errorf("--file: name maintenance-controller's configuration file: its checks decide")
	}
	config, err := profile.Load(s.given.File, s.given.Environment)
	if err != nil {
		return nil, err
	}
	back := map[string][]Claim{}
	for _, claim := range asked {
		if claim.Out {
			back[claim.Node] = append(back[claim.Node], claim)
		}
	}
	nodes := make([]profile.Node, len(c.Nodes))
	for i := range c.Nodes {
		if nodes[i].Object, err = before(&c.Nodes[i], back[c.Nodes[i].Name]); err != nil {
			return nil, err
		}
	}
	moves, why := map[string]bool{}, map[string]string{}
	for _, e := range config.Decide(nodes, profile.Facts{}, c.At) {
		for _, p := range e.Profiles {
			key := Claim{Node: e.Node, For: p.Profile}.Key()
			moves[key] = p.Move != nil && p.Move.To == state.Maintenance
			why[key] = held(p)
		}
	}
	refused := map[string]string{}
	for _, claim := range asked {
		if !moves[claim.Key()] {
			refused[claim.Key()] = why[claim.Key()]
		}
	}
	return refused, nil
}

// before is a node as it was before some of its profiles came into maintenance.
func before(n *corev1.Node, profiles []Claim) (*corev1.Node, error) {
	if len(profiles) == 0 {
		return n, nil
	}
	data, err := state.Read(n.Annotations[state.DataAnnotation])
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	n = n.DeepCopy()
	for _, claim := range profiles {
		data.Profiles[claim.For] = state.Profile{Transition: claim.Asked, Current: state.Required, Previous: state.Required}
	}
	if n.Annotations[state.DataAnnotation], err = data.Write(); err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	n.Labels = maps.Clone(n.Labels)
	n.Labels[state.StateLabel] = string(state.Required)
	return n, nil
}

// held says why a profile does not move into maintenance.
func held(p profile.Evaluated) string {
	if p.Unknown {
		return "the file has no such profile"
	}
	var words []string
	for _, t := range p.Transitions {
		if t.Next != state.Maintenance {
			continue
		}
		if t.Refused != "" {
			return t.Refused
		}
		for _, o := range t.Checks {
			switch {
			case o.Error != "":
				words = append(words, fmt.Sprintf("%s cannot be asked here (%s)", o.Instance, o.Error))
			case !o.Holds && o.Reason != "":
				words = append(words, o.Instance+": "+o.Reason)
			case !o.Holds:
				words = append(words, o.Instance+" does not hold")
			}
		}
	}
	if len(words) == 0 {
		return "no transition leads into maintenance"
	}
	return "checks: " + strings.Join(words, "; ")
}
