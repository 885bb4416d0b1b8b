package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/profile/state"
)

// View is the cluster as checks see it. What is granted in one round of decisions is seen by those after it.
type View struct {
	// Marked are nodes with a pod that the kind affinity looks for, and Unread says why of the nodes whose pods could not be read.
	Marked map[string]bool
	Unread map[string]string
	// Samples are the answers to queries.
	Samples map[Query]Sample
	// Leases are those that there are.
	Leases map[LeaseName]Lease
	// Ahead is how far the API server's clock, by which Leases are judged and taken, is ahead of the one that says Case.Now.
	Ahead time.Duration

	members []*Member
	byName  map[string]*Member
	index   *index
}

// Member is a node of the cluster.
type Member struct {
	Name     string
	Labels   map[string]string
	Profiles []string
	Data     state.Data
	// Unreadable reports that its annotation cannot be read.
	Unreadable bool
	// entering are profiles that were let into in-maintenance, and are not there by the annotation yet.
	entering []string
}

// NewView is the view of nodes; entering are by node the profiles of which a transition to in-maintenance is under way.
func NewView(nodes []*corev1.Node, entering map[string][]string) *View {
	v := &View{byName: map[string]*Member{}}
	for _, n := range nodes {
		data, err := state.Read(n.Annotations[state.DataAnnotation])
		m := &Member{
			Name: n.Name, Labels: n.Labels, Profiles: state.Profiles(n.Labels), Data: data, Unreadable: err != nil,
			entering: slices.Clone(entering[n.Name]),
		}
		if v.byName[n.Name] != nil {
			continue
		}
		v.byName[n.Name] = m
		v.members = append(v.members, m)
	}
	slices.SortFunc(v.members, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// Members are the nodes, by name. Their data may be changed until the first check is asked.
func (v *View) Members() []*Member { return v.members }

// Member is the node of a name, nil if there is none.
func (v *View) Member(name string) *Member { return v.byName[name] }

// Grant notes that a profile of a node goes into maintenance.
func (v *View) Grant(node, profile string) {
	if m := v.byName[node]; m != nil && !slices.Contains(m.entering, profile) {
		before := m.Maintained()
		m.entering = append(m.entering, profile)
		if v.index != nil && !before {
			v.index.maintain(m)
		}
	}
}

// Take notes that leases are taken.
func (v *View) Take(claims []Claim) {
	for _, c := range claims {
		if v.Leases == nil {
			v.Leases = map[LeaseName]Lease{}
		}
		v.Leases[c.LeaseName] = Lease{Holder: c.Holder, Renewed: c.At, For: c.For}
	}
}

// Maintained reports whether a node is in maintenance by any of its profiles, or about to be: its label or its annotation says
// so, or it was granted. More than one says so when what one of them says is late; then it counts.
func (m *Member) Maintained() bool {
	return m.Labels[state.StateLabel] == string(state.Maintenance) || len(m.entering) > 0 || len(m.In(state.Maintenance)) > 0
}

// In are the profiles of a node's label that are in a state, by its annotation.
func (m *Member) In(s state.State) []string {
	var names []string
	for _, name := range m.Profiles {
		if p, there := m.Data.Profiles[name]; there && p.Current == s {
			names = append(names, name)
		}
	}
	return names
}

// Entering are the profiles that are on their way into maintenance.
func (m *Member) Entering() []string { return m.entering }

// lastTransition is when a profile last changed its state, or the latest of all; unknown where the annotation does not say.
func (m *Member) lastTransition(profile string) (at time.Time, known bool) {
	for name, p := range m.Data.Profiles {
		if (profile == "" || name == profile) && (!known || p.Transition.After(at)) {
			at, known = p.Transition, true
		}
	}
	return at, known
}

// Query is a query of a Prometheus server.
type Query struct {
	URL   string `json:"url"`
	Query string `json:"query"`
}

func (q Query) compare(o Query) int {
	return cmp.Or(strings.Compare(q.URL, o.URL), strings.Compare(q.Query, o.Query))
}

// Sample is the answer to a query: its one value, or why there is none.
type Sample struct {
	Value    float64  `json:"value"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// LeaseName names a Lease.
type LeaseName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (l LeaseName) compare(o LeaseName) int {
	return cmp.Or(strings.Compare(l.Namespace, o.Namespace), strings.Compare(l.Name, o.Name))
}

// Lease is the content of a Lease.
type Lease struct {
	Holder  string
	Renewed time.Time
	For     time.Duration
	// Error says why it could not be read. It may be anybody's then: a Lease that is missing is free, and this one is not.
	Error string
}

// Claim is a Lease to be taken.
type Claim struct {
	LeaseName
	Holder string        `json:"holder"`
	At     time.Time     `json:"at"`
	For    time.Duration `json:"for"`
}

// affinityKey and affinityValue are the preference of pods that would rather move only once.
const affinityKey, affinityValue = state.StateLabel, string(state.Operational)

// Marked reports whether a pod prefers nodes that are operational, and no other state.
func Marked(pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return false
	}
	for _, preferred := range pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		for _, e := range preferred.Preference.MatchExpressions {
			if e.Key == affinityKey && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == affinityValue {
				return true
			}
		}
	}
	return false
}
