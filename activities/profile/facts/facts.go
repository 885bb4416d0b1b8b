// Package facts gathers what the checks of profiles look at besides nodes, and takes the Leases that transitions claim.
package facts

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/checks/prometheus"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/k8s/lease"
	"drydock.dev/drydock/k8s/objects"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	// atOnce is how many requests are under way at the same time, and queryTimeout what one query may take.
	atOnce       = 8
	queryTimeout = 10 * time.Second
	// fewLeases are read one by one; of more in a namespace all are listed.
	fewLeases = 20
	// fewNodes are those whose pods are read node by node; of more the pods of the cluster are.
	fewNodes = 20
)

// Gatherer gathers facts. It keeps none.
type Gatherer struct {
	Client kube.Interface
	// Agent is the User-Agent of requests.
	Agent string
}

// gathering is one round, by many at once.
type gathering struct {
	*Gatherer
	mu    sync.Mutex
	facts profile.Facts
	// dated is set once an answer said how far the API server's clock is ahead.
	dated bool
}

func (g *Gatherer) leases() lease.Client { return lease.Client{Objects: objects.New(g.Client)} }

// Gather reads what checks need. What cannot be read is a fact too: that it could not.
func (g *Gatherer) Gather(ctx context.Context, needs check.Needs, nodes []*corev1.Node) profile.Facts {
	round := gathering{Gatherer: g, facts: profile.Facts{
		Marked: map[string]bool{}, Unread: map[string]string{},
		Samples: map[check.Query]check.Sample{}, Leases: map[check.LeaseName]check.Lease{},
	}}
	var all errgroup.Group
	all.SetLimit(atOnce)
	do := func(work func()) {
		all.Go(func() error {
			work()
			return nil
		})
	}
	for _, q := range needs.Queries {
		do(func() { round.query(ctx, q) })
	}
	round.readLeases(ctx, needs.Leases, do)
	if needs.Pods {
		round.readPods(ctx, waiting(nodes), do)
	}
	_ = all.Wait() // what went wrong is among the facts
	return round.facts
}

// note writes a fact down.
func (r *gathering) note(write func(f *profile.Facts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	write(&r.facts)
}

func (r *gathering) query(ctx context.Context, q check.Query) {
	server := prometheus.Server{URL: q.URL, Timeout: period.Duration(queryTimeout)}
	value, warnings, err := server.Sample(ctx, r.Agent, q.Query)
	sample := check.Sample{Value: value, Warnings: warnings}
	if err != nil {
		sample = check.Sample{Error: err.Error(), Warnings: warnings}
	}
	r.note(func(f *profile.Facts) { f.Samples[q] = sample })
}

// readLeases reads Leases, in the order of their namespaces.
func (r *gathering) readLeases(ctx context.Context, names []check.LeaseName, do func(func())) {
	in := map[string][]check.LeaseName{}
	for _, name := range names {
		in[name.Namespace] = append(in[name.Namespace], name)
	}
	for namespace, these := range in {
		if len(these) > fewLeases {
			do(func() { r.listLeases(ctx, namespace, these) })
			continue
		}
		for _, name := range these {
			do(func() {
				found, at, err := r.leases().Get(ctx, name.Namespace, name.Name)
				r.noteClock(at)
				r.noteLease(name, found, err)
			})
		}
	}
}

func (r *gathering) listLeases(ctx context.Context, namespace string, names []check.LeaseName) {
	found, at, err := r.leases().List(ctx, namespace)
	r.noteClock(at)
	by := map[string]*coordinationv1.Lease{}
	for _, l := range found {
		by[l.Name] = l
	}
	for _, name := range names {
		if l := by[name.Name]; l != nil || err != nil {
			r.noteLease(name, l, err)
		}
	}
}

// noteClock compares the API server's clock with this machine's. Of several answers the earliest time counts: no Lease that lasts is taken.
func (r *gathering) noteClock(at lease.Clock) {
	ahead := time.Until(at.Earliest)
	r.note(func(f *profile.Facts) {
		if !r.dated || ahead < f.Ahead {
			r.dated, f.Ahead = true, ahead
		}
	})
}

func (r *gathering) noteLease(name check.LeaseName, found *coordinationv1.Lease, err error) {
	if apierrors.IsNotFound(err) {
		return
	}
	fact := check.Lease{}
	if err != nil {
		fact.Error = err.Error()
	} else {
		fact = factOf(found)
	}
	r.note(func(f *profile.Facts) { f.Leases[name] = fact })
}

func factOf(l *coordinationv1.Lease) check.Lease {
	return check.Lease{Holder: lease.Holder(l), Renewed: lease.Renewed(l), For: lease.For(l)}
}

// waiting are the nodes that wait for maintenance by any of their profiles: the pods of others matter to no check.
func waiting(nodes []*corev1.Node) []string {
	var names []string
	for _, n := range nodes {
		data, err := state.Read(n.Annotations[state.DataAnnotation])
		if err != nil {
			continue // nothing is decided for it
		}
		for _, p := range data.Profiles {
			if p.Current == state.Required {
				names = append(names, n.Name)
				break
			}
		}
	}
	return names
}

func (r *gathering) readPods(ctx context.Context, nodes []string, do func(func())) {
	if len(nodes) > fewNodes {
		do(func() { r.readAllPods(ctx, nodes) })
		return
	}
	for _, node := range nodes {
		do(func() {
			pods, err := k8s.PodsOn(ctx, r.Client, node)
			r.note(func(f *profile.Facts) {
				if err != nil {
					f.Unread[node] = err.Error()
				}
				for _, p := range pods {
					if check.Marked(p) {
						f.Marked[node] = true
					}
				}
			})
		})
	}
}

func (r *gathering) readAllPods(ctx context.Context, nodes []string) {
	matters := map[string]bool{}
	for _, node := range nodes {
		matters[node] = true
	}
	marked := map[string]bool{}
	err := k8s.EachPod(ctx, r.Client, "", func(p *corev1.Pod) {
		if matters[p.Spec.NodeName] && check.Marked(p) {
			marked[p.Spec.NodeName] = true
		}
	})
	r.note(func(f *profile.Facts) {
		f.Marked = marked
		for _, node := range nodes {
			if err != nil {
				f.Unread[node] = err.Error()
			}
		}
	})
}
