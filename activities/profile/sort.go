package profile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
)

// asNodes are the nodes with what is under way, and with the times of the notifications that are.
func (e *evaluator) asNodes(nodes map[string]*corev1.Node) []rules.Node {
	busy := map[string]map[string]rules.Busy{}
	note := func(r Ref, b rules.Busy) {
		if busy[r.Node] == nil {
			busy[r.Node] = map[string]rules.Busy{}
		}
		busy[r.Node][r.Profile] = b
	}
	for _, f := range e.in.Failed {
		if time.Now().Before(f.Until) {
			note(f.Ref, rules.Busy{To: f.To, Enter: f.Enter, Until: f.Until, Failed: f.Why})
		}
	}
	for _, u := range e.in.UnderWay {
		if node := nodes[u.Node]; node != nil && !u.isSeen(node, time.Now()) {
			note(u.Ref, rules.Busy{To: u.To, Enter: u.Enter, Since: u.Began})
		}
	}
	sending := map[string][]Notice{}
	for _, n := range e.in.Sending {
		sending[n.Node] = append(sending[n.Node], n)
	}
	var all []rules.Node
	for name, node := range nodes {
		all = append(all, rules.Node{Object: announced(node, sending[name]), Busy: busy[name]})
	}
	return all
}

const (
	// lateWrite is how long a write may be on its way of a transition that was lost: as long as a step may take.
	lateWrite = 35 * time.Second
	// unseenFor is how long an end is waited for to be seen: somebody may have written another over it.
	unseenFor = 10 * time.Minute
	// seenFor is how long an end is remembered that was seen: the next evaluation may be that of a worker whose watch is behind.
	seenFor = 2 * time.Minute
)

// isSeen reports whether the node shows the end of a transition. One of another node by that name is over with its end.
func (u UnderWay) isSeen(node *corev1.Node, now time.Time) bool {
	if !u.Ended {
		return false
	}
	since := now.Sub(u.EndedAt)
	if u.Lost && u.Moved.IsZero() && since < lateWrite {
		return false
	}
	data, err := state.Read(node.Annotations[state.DataAnnotation])
	if string(node.UID) != u.UID || u.Moved.IsZero() || err != nil || since > unseenFor {
		return true
	}
	is, there := data.Profiles[u.Profile]
	switch {
	case !there:
		return true
	case u.Enter:
		return is.Previous == is.Current || is.Current != u.To
	default:
		return !is.Transition.Before(u.Moved)
	}
}

// isPointless reports that a transition runs for a profile which was taken from the node's label: a drain would go on for ever.
func (u UnderWay) isPointless(node *corev1.Node) bool {
	return !u.Ended && !u.Stopped && !u.IDTaken && u.RunID != "" && !slices.Contains(state.Profiles(node.Labels), u.Profile)
}

// announced is a node with the times of notifications that are being sent.
func announced(node *corev1.Node, sending []Notice) *corev1.Node {
	if len(sending) == 0 {
		return node
	}
	// Those of several profiles share a time.
	data, err := state.Read(node.Annotations[state.DataAnnotation])
	if err != nil {
		return node
	}
	later := false
	for _, n := range sending {
		if string(node.UID) == n.UID && data.Notifications[n.Instance].Before(n.At) {
			data, later = data.Notified(n.Instance, n.At), true
		}
	}
	text, err := data.Write()
	if err != nil || !later {
		return node
	}
	shallow := *node
	shallow.Annotations = map[string]string{}
	for key, value := range node.Annotations {
		shallow.Annotations[key] = value
	}
	shallow.Annotations[state.DataAnnotation] = text
	return &shallow
}

// facts are what checks look at besides nodes, with the Leases that are being taken.
func (e *evaluator) facts(ctx context.Context, config *rules.Config, nodes map[string]*corev1.Node) rules.Facts {
	all := make([]*corev1.Node, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, node)
	}
	facts := e.Facts.Gather(ctx, config.Needs(), all)
	for _, u := range e.in.UnderWay {
		if u.Ended && u.Moved.IsZero() {
			continue
		}
		for _, c := range u.Claims {
			if l, there := facts.Leases[c.LeaseName]; !there || l.Renewed.Before(c.At) {
				facts.Leases[c.LeaseName] = check.Lease{Holder: c.Holder, Renewed: c.At, For: c.For}
			}
		}
	}
	return facts
}

// sorting makes of what was decided what is to be done now.
type sorting struct {
	*evaluator
	config *rules.Config
	nodes  map[string]*corev1.Node
	now    time.Time
	moves  []move
	sends  []Notice
	bring  []brought
	leave  []Left
	held   map[Left]bool
	strays []stray
	// lifted are nodes without the cordon that a drain wants.
	lifted []*corev1.Node
	claims []check.Claim
	// sending counts the notifications of each instance that are being sent.
	sending map[string]int
}

type move struct {
	api.ProfileTransitionInput
}

func newSorting(e *evaluator, config *rules.Config, nodes map[string]*corev1.Node, now time.Time) *sorting {
	s := &sorting{evaluator: e, config: config, nodes: nodes, now: now, held: map[Left]bool{}, sending: map[string]int{}}
	for _, n := range e.in.Sending {
		s.sending[n.Instance]++
	}
	return s
}

// take takes what was decided for a node. Notifications that are due are sent first, then the annotation is brought up to date, and
// transitions begin last: each is decided anew once the one before is done.
func (s *sorting) take(one rules.Evaluation) {
	node := s.nodes[one.Node]
	maintained := s.maintained(node)
	if one.Problem != "" {
		return
	}
	s.findMarks(node)
	notified, left := s.notifies(node, one)
	if len(left) > 0 {
		one.Data = withoutTimes(node, one.Data, left)
		one.Changed = one.Changes(node)
	}
	s.leaves(node, one, maintained)
	if notified {
		return
	}
	if one.Changed {
		s.bring = append(s.bring, brought{node: node, over: s.shown(node), data: one.Data})
		return
	}
	for _, p := range one.Profiles {
		s.begins(node, p, maintained)
	}
}

// maxOfInstance bounds the notifications of an instance that are being sent: one whose receiver is down must not hold up others.
const maxOfInstance = 100

// notifies notes the notifications of a node that are due, and reports whether there are some. Those for which there is no room are left
// out: no node waits for them.
func (s *sorting) notifies(node *corev1.Node, one rules.Evaluation) (notified bool, left []string) {
	for _, p := range one.Profiles {
		for _, due := range p.Notify {
			if len(s.sends) >= s.in.Notices || s.sending[due.Instance] >= maxOfInstance {
				left = append(left, due.Instance)
				continue
			}
			s.sending[due.Instance]++
			was := state.Profile{Current: p.State, Previous: previousOf(node, p), Transition: p.Since}
			s.sends, notified = append(s.sends, Notice{
				Ref: Ref{p.Profile, one.Node}, UID: string(node.UID), Instance: due.Instance, At: s.now.UTC(), Was: was, Why: due.Why,
			}), true
		}
	}
	return notified, left
}

// withoutTimes is what a node is to show, without the times of notifications that were left out.
func withoutTimes(node *corev1.Node, data state.Data, left []string) state.Data {
	data = data.Clone()
	before, err := state.Read(node.Annotations[state.DataAnnotation])
	for _, instance := range left {
		delete(data.Notifications, instance)
		if at, known := before.Notifications[instance]; known && err == nil {
			data.Notifications[instance] = at
		}
	}
	return data
}

// previousOf is the state that a profile was in at the last evaluation.
func previousOf(node *corev1.Node, p rules.Evaluated) state.State {
	data, err := state.Read(node.Annotations[state.DataAnnotation])
	if is, there := data.Profiles[p.Profile]; err == nil && there {
		return is.Previous
	}
	return p.State
}

// shown is the version of a node that the watch shows.
func (s *sorting) shown(node *corev1.Node) string {
	if w, there := s.written[node.Name]; there {
		return w.over
	}
	return node.ResourceVersion
}

// begins notes the transition of a profile, or its triggers on entering a state.
func (s *sorting) begins(node *corev1.Node, p rules.Evaluated, maintained map[string]string) {
	in := api.ProfileTransitionInput{Profile: p.Profile, Node: node.Name, UID: string(node.UID), From: p.State, Since: p.Since, Claims: p.Claims}
	switch {
	case len(p.Enter) > 0:
		in.To, in.Enter, in.Triggers = p.State, true, p.Enter
	case p.Move != nil:
		in.To, in.Triggers = p.Move.To, p.Move.Triggers
		in.OwnSlot = maintainsFirst(s.config, in.Triggers)
		if s.config.Maintains(p.Profile, p.State) {
			in.Maintained = maintained[api.ProfileRequestor(p.Profile)]
		}
		if i := slices.IndexFunc(p.Transitions, func(t rules.Considered) bool { return t.Chosen }); i >= 0 {
			in.Check = bounds.Cut(p.Transitions[i].Check, bounds.Text)
		}
	default:
		s.claims = append(s.claims, p.Claims...)
		return
	}
	s.moves = append(s.moves, move{in})
}

// maintained are by requestor the first runs of the maintenances on a node that profiles may have begun.
func (s *sorting) maintained(node *corev1.Node) map[string]string {
	mark, err := k8s.MarkOf(node)
	if err != nil || len(mark.Holders) == 0 {
		return nil
	}
	of := map[string]string{}
	for _, h := range mark.Holders {
		if strings.HasPrefix(h.Requestor, api.ProfileRequestorPrefix) && s.Home.Owns(h) && uuid.Validate(h.RunID) == nil &&
			h.WorkflowID == api.MaintenanceID(s.cluster, node.Name, h.Requestor) {
			of[h.Requestor] = h.RunID
		}
	}
	return of
}

// leaves notes maintenances of profiles that are not in the state for which they were begun: somebody has taken the profile from the
// label or from the configuration, or they have been told that the work is done, and validate the node still. EndProfileMaintenance ends
// only those that a profile has begun.
func (s *sorting) leaves(node *corev1.Node, one rules.Evaluation, maintained map[string]string) {
	for requestor, run := range maintained {
		left := Left{Node: node.Name, Requestor: requestor, RunID: run}
		s.held[left] = true
		i := slices.IndexFunc(one.Profiles, func(e rules.Evaluated) bool { return api.ProfileRequestor(e.Profile) == requestor })
		left.Done = i >= 0 // a node whose profile has moved on is validated, even where that takes longer than the transition
		if i < 0 || !s.keeps(one.Profiles[i]) {
			s.leave = append(s.leave, left)
		}
	}
}

// keeps reports whether a profile keeps its maintenance.
func (s *sorting) keeps(p rules.Evaluated) bool {
	underWay := p.Busy != nil && p.Busy.Until.IsZero()
	return p.Unknown || underWay || p.Move != nil || s.config.Maintains(p.Profile, p.State)
}

// result is what is to be done, as far as there is room: what brings nodes back first, then those that wait for longest.
func (s *sorting) result() Evaluated {
	slices.SortFunc(s.moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.Since.Compare(b.Since), strings.Compare(a.Node, b.Node), strings.Compare(a.Profile, b.Profile))
	})
	result := Evaluated{Notices: s.sends}
	forward := 0
	for _, m := range s.moves {
		if len(result.Begin) >= s.in.Room {
			break
		}
		if IsForward(m.To) {
			if forward++; forward > s.in.Forward {
				continue
			}
		}
		result.Begin = append(result.Begin, m.ProfileTransitionInput)
	}
	slices.SortFunc(s.leave, func(a, b Left) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Requestor, b.Requestor))
	})
	for _, u := range s.in.UnderWay {
		node := s.nodes[u.Node]
		if u.Ended && (node == nil || u.isSeen(node, s.now)) && s.now.Sub(u.EndedAt) > seenFor {
			result.Settled = append(result.Settled, u.Ref)
		}
		// A node that is gone, or another, ends what runs for it by itself.
		if node != nil && string(node.UID) == u.UID && u.isPointless(node) {
			result.Stop = append(result.Stop, u.Ref)
		}
	}
	for _, left := range s.in.Leaving {
		if !s.held[Left{Node: left.Node, Requestor: left.Requestor, RunID: left.RunID}] {
			result.Gone = append(result.Gone, left)
		}
	}
	for _, left := range s.leave {
		if !slices.Contains(s.in.Leaving, left) && len(result.Leave)+len(s.in.Leaving) < maxLeaving {
			result.Leave = append(result.Leave, left)
		}
	}
	return result
}

// maxLeaving bounds the maintenances that are being ended at a time.
const maxLeaving = 200

// rank orders transitions.
func (m move) rank() int {
	switch {
	case m.To == state.Operational:
		return 0
	case m.Enter:
		return 1
	case m.To == state.Maintenance:
		return 2
	default:
		return 3
	}
}

// countsOf are the nodes by profile and state.
func countsOf(all []rules.Evaluation) []api.ProfileCount {
	type key struct {
		profile string
		state   state.State
	}
	counted := map[key]api.ProfileCount{}
	for _, one := range all {
		for _, p := range one.Profiles {
			if p.Unknown {
				continue
			}
			k := key{p.Profile, p.State}
			c := counted[k]
			c.Profile, c.State, c.Nodes = p.Profile, p.State, c.Nodes+1
			if len(p.Failing()) > 0 {
				c.Failing++
			}
			counted[k] = c
		}
	}
	counts := slices.Collect(maps.Values(counted))
	slices.SortFunc(counts, func(a, b api.ProfileCount) int {
		return cmp.Or(strings.Compare(a.Profile, b.Profile), cmp.Compare(slices.Index(state.All(), a.State), slices.Index(state.All(), b.State)))
	})
	return counts
}
