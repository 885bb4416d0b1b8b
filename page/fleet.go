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
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/overview"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/web"
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
	Bar   []web.Segment
	// Groups are the nodes by state, those without any left out.
	Groups []group
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

// zones sorts nodes by zone and state. The digest changes when a node comes into another state.
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
	for _, name := range names {
		zones = append(zones, zoneOf(name, byZone[name]))
	}
	return zones, sum.Sum64()
}

func zoneOf(name string, by *[states][]chip) zone {
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
		z.Bar = append(z.Bar, web.Segment{Class: stateClasses[at], From: from, Width: before*1000/total - from})
		z.Groups = append(z.Groups, group{
			ID: fmt.Sprintf("zone-%s-%s", name, stateClasses[at]), Class: stateClasses[at], Nodes: nodes, Folded: state(at) == inService,
			Word: strconv.Itoa(len(nodes)) + " " + stateWords[at],
		})
	}
	return z
}

// rendered is a page as it is sent. Still is for readers without scripts who do not want it to load again by itself.
type rendered struct{ moving, still sent }

// sent is a page, and the same compressed.
type sent struct {
	plain, zipped []byte
	// digest is of what it shows, without ages.
	digest string
}

// read is the first page.
func (p *Page) read(ctx context.Context) (rendered, error) {
	return p.fleet.get(ctx, readsWithin, p.render)
}

func (p *Page) render(ctx context.Context) (all rendered, _ time.Duration, err error) {
	s := screen{Title: "Cluster", Here: "/"}
	// Temporal may take long to answer, or be away: what the nodes say is shown without it.
	waiting, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	status, err := p.status.get(waiting, overview.Within, p.readStatus)
	s.At = p.from.now()
	if err != nil {
		p.Logger.Warn("page: Temporal has not answered yet", "error", err)
		s.Problem = "Temporal has not answered yet: only the nodes are shown."
	} else {
		d := views.Cluster(status, views.At(s.At))
		s.Title, s.Documents = d.Title, []document.Document{untitled(d)}
	}
	nodes, err := p.from.nodes(ctx)
	var of uint64
	if err != nil {
		p.Logger.Warn("page: the nodes cannot be read", "error", err)
		s.Problem = "The nodes cannot be read at the moment: the worker's log has the reason."
	} else {
		s.Zones, of = p.zones(nodes)
	}
	s.Digest = digestOf(of, status)
	if all.moving, err = draw(s); err != nil {
		return all, fresh, err
	}
	s.Still = true
	all.still, err = draw(s)
	all.moving.digest = s.Digest
	return all, fresh, err
}

// untitled is a document whose title the page has.
func untitled(d document.Document) document.Document {
	d.Title = ""
	return d
}

// readStatus reads what goes on from Temporal. Parts that cannot be read say so.
func (p *Page) readStatus(ctx context.Context) (status api.ClusterStatus, counts time.Duration, err error) {
	began := time.Now()
	status = p.from.status(ctx, p.from.now())
	counts = statusFresh
	if status.Profiles != nil {
		counts = profilesFresh
	}
	return status, max(counts, restFactor*time.Since(began)), nil
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
	if r.URL.Query().Has(still) {
		page.moving = page.still
	}
	send(w, r, http.StatusOK, page.moving)
}
