package page

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/views"
)

// state is where a node stands, by what is written on the node.
type state int

// The states, in the order in which they are shown.
const (
	failed state = iota
	down
	moving
	ready
	cordoned
	inService
	states
)

// stateWords are what people read of a state, after a number of nodes.
var stateWords = [states]string{"failed, and held", "not Ready", "in maintenance", "Ready for work", "cordoned by others", "in service"}

// stateClasses are their names in the style sheet.
var stateClasses = [states]string{"failed", "down", "moving", "ready", "cordoned", "service"}

func (p *Page) stateOf(n *corev1.Node) state {
	mark, err := p.from.mark(n)
	phase := api.Phase(n.Labels[api.PhaseLabel])
	switch held := err != nil || len(mark.Holders) > 0; { // a mark that cannot be read is one
	case held && phase == api.RequestorFailed:
		return failed
	case held && phase == api.Ready:
		return ready
	case held:
		return moving
	case !isReady(n):
		return down
	case n.Spec.Unschedulable:
		return cordoned
	default:
		return inService
	}
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// zone is the nodes of one, or those that are in none.
type zone struct {
	Name string
	// Total says how many there are, and Bar shows their states.
	Total string
	Bar   []segment
	// Groups are the nodes by state, those without any left out.
	Groups []group
}

// segment is a part of a bar, in thousandths.
type segment struct {
	Class       string
	From, Width int
}

// group is the nodes of a zone in one state.
type group struct {
	// ID is the group's on the page.
	ID, Class, Word string
	Nodes           []chip
	// Folded: the nodes are shown on request.
	Folded bool
}

// chip is a node in the list of a group. Phase is that of its maintenance.
type chip struct{ Name, Phase string }

// zones sorts nodes by zone and state. The digest tells whether anything has changed.
func (p *Page) zones(nodes []*corev1.Node) (zones []zone, digest uint64) {
	sum := fnv.New64a()
	byZone := map[string]*[states][]chip{}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return plan.CompareNames(a.Name, b.Name) })
	for _, n := range nodes {
		name, at := n.Labels[corev1.LabelTopologyZone], p.stateOf(n)
		if byZone[name] == nil {
			byZone[name] = &[states][]chip{}
		}
		one := chip{Name: n.Name}
		if at != inService && at != down && at != cordoned {
			one.Phase = n.Labels[api.PhaseLabel]
		}
		byZone[name][at] = append(byZone[name][at], one)
		fmt.Fprintln(sum, name, n.Name, at, one.Phase)
	}
	names := make([]string, 0, len(byZone))
	for name := range byZone {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return plan.CompareNames(names[i], names[j]) < 0 })
	for i, name := range names {
		zones = append(zones, zoneOf(i, name, byZone[name]))
	}
	return zones, sum.Sum64()
}

func zoneOf(i int, name string, by *[states][]chip) zone {
	total := 0
	for _, nodes := range by {
		total += len(nodes)
	}
	z := zone{Name: cmp.Or(name, "no zone"), Total: number.Of(total, "node")}
	before := 0
	for at, nodes := range by {
		if len(nodes) == 0 {
			continue
		}
		from := before * 1000 / total
		before += len(nodes)
		z.Bar = append(z.Bar, segment{Class: stateClasses[at], From: from, Width: before*1000/total - from})
		z.Groups = append(z.Groups, group{
			ID: fmt.Sprintf("zone-%d-%s", i, stateClasses[at]), Class: stateClasses[at], Nodes: nodes, Folded: state(at) == inService,
			Word: strconv.Itoa(len(nodes)) + " " + stateWords[at],
		})
	}
	return z
}

// clusterReading is what was read of the cluster last.
type clusterReading struct {
	at     time.Time
	status api.ClusterStatus
}

// rendered is a page as it is sent.
type rendered struct {
	at time.Time
	// digest is of what it shows, without ages.
	digest        string
	plain, zipped []byte
}

// read is the first page, made anew where it is older than fresh. Everybody who asks in that time gets the same.
func (p *Page) read(ctx context.Context) (rendered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.from.now()
	if p.fleet.plain != nil && now.Sub(p.fleet.at) < fresh {
		return p.fleet, nil
	}
	// The page is everybody's: who asked for it first may be gone before it is made.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readsWithin)
	defer cancel()
	if now.Sub(p.cluster.at) >= clusterFresh {
		p.cluster = clusterReading{at: now, status: p.from.status(ctx, now)}
	}
	nodes, err := p.from.nodes(ctx)
	if err != nil {
		return rendered{}, fmt.Errorf("reading the nodes: %w", err)
	}
	zones, of := p.zones(nodes)
	s := screen{
		Title: strings.TrimSpace("Cluster " + p.cluster.status.Cluster), Here: "/", Zones: zones, Parts: partsOf(views.Cluster(p.cluster.status, views.At(now)), linked), At: now,
	}
	plain, zipped, err := draw(s)
	if err != nil {
		return rendered{}, err
	}
	p.fleet = rendered{at: now, digest: digestOf(of, p.cluster.status), plain: plain, zipped: zipped}
	return p.fleet, nil
}

// digestOf tells two pages apart that show something else, but for ages and for when it was seen.
func digestOf(nodes uint64, s api.ClusterStatus) string {
	s.At = time.Time{}
	if s.Slots != nil {
		slots := *s.Slots
		slots.ObservedAt = nil
		s.Slots = &slots
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, nodes, asJSON(s))
	return strconv.FormatUint(sum.Sum64(), 36)
}

func (p *Page) serveFleet(w http.ResponseWriter, r *http.Request) {
	page, err := p.read(r.Context())
	if err != nil {
		p.fails(w, r, err)
		return
	}
	send(w, r, http.StatusOK, page.plain, page.zipped)
}
