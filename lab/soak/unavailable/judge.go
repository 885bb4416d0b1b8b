package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/rules/profile/state"
)

// The kinds of what takes nodes out.
const (
	byRequest     = "maintenance"
	byPlan        = "plan"
	byProfile     = "profile"
	byHealthCheck = "health check"
)

// judge sees every version of every node, in the order in which the API server made them.
type judge struct {
	mu     sync.Mutex
	latest map[string]*corev1.Node
	// out are the nodes that are out of service, with who took each; taken counts by kind.
	out   map[string]string
	taken map[string]int
	wrong witness.Violations
}

func newJudge() *judge {
	return &judge{latest: map[string]*corev1.Node{}, out: map[string]string{}, taken: map[string]int{}}
}

// watch begins to watch; all nodes are in service at first. One watch of one kind has the versions in the order of their revisions.
func (j *judge) watch(ctx context.Context, kube kubernetes.Interface) error {
	see := func(_ watch.EventType, n *corev1.Node) { j.see(n) }
	if err := witness.Nodes(ctx, kube, see, j.wrong.Broke); err != nil {
		return err
	}
	if out := j.outNow(); len(out) > 0 {
		return fmt.Errorf("nodes are out of service in the beginning: %v", out)
	}
	return nil
}

// takerOf says by what a node is out of service: by which maintenance or else that it is the profile, and of which kind that is; empty if
// the node is in service.
func takerOf(n *corev1.Node) (who, kind string, err error) {
	mark, err := k8s.MarkOf(n)
	id := ""
	if len(mark.Holders) > 0 {
		id = mark.Holders[0].WorkflowID
	}
	switch {
	case err != nil:
		return "", "", err
	case id == "" && !n.Spec.Unschedulable:
		return "", "", nil
	case id == "" || !strings.Contains(id, "node-maintenance/"):
		return "profile, " + n.Labels[state.StateLabel], byProfile, nil
	}
	switch _, _, requestor, err := api.ParseMaintenanceID(id); {
	case err != nil:
		return "", "", err
	case requestor == api.RemediationRequestor(checkName):
		return id, byHealthCheck, nil
	case requestor == planRequestor:
		return id, byPlan, nil
	default:
		return id, byRequest, nil
	}
}

func (j *judge) see(n *corev1.Node) {
	who, kind, err := takerOf(n)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latest[n.Name] = n
	_, was := j.out[n.Name]
	switch {
	case err != nil:
		j.wrong.Add("node %s, revision %s: %v", n.Name, n.ResourceVersion, err)
	case who == "":
		delete(j.out, n.Name)
	default:
		if j.out[n.Name] = who; !was {
			j.taken[kind]++
		}
		if !was && len(j.out) > 1 {
			j.wrong.Add("%d nodes are out of service with revision %s, by %s: %v", len(j.out), n.ResourceVersion, n.Name, j.out)
		}
	}
}

// nodes are the latest versions, by name.
func (j *judge) nodes() []*corev1.Node {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedFunc(maps.Values(j.latest), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
}

func (j *judge) outNow() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.out)
}

func (j *judge) tell() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprintf("taken out %v; out now %v; %d violations", j.taken, j.out, len(j.wrong.Found()))
}

// verdict is an error where something was violated, and where a kind has taken no node: then nothing was tested.
func (j *judge) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var problems []error
	if found := j.wrong.Found(); len(found) > 0 {
		problems = append(problems, fmt.Errorf("%d violations, see above; the first: %s", len(found), found[0]))
	}
	for _, kind := range []string{byRequest, byPlan, byProfile, byHealthCheck} {
		if j.taken[kind] == 0 {
			problems = append(problems, fmt.Errorf("nothing of the kind %q has taken a node out", kind))
		}
	}
	if len(problems) == 0 {
		fmt.Printf("nodes were taken out %v times, and never two at one instant\n", j.taken)
	}
	return errors.Join(problems...)
}

// callTimeout bounds a call to a server, which may be away.
const callTimeout = 10 * time.Second
