package main

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/k8s"
)

// The rules that a violation can be of.
const (
	ruleParallel    = "max-parallel"
	ruleGroup       = "group-max-parallel"
	ruleUnavailable = "max-unavailable"
	ruleOneHolder   = "one-holder"
	ruleUncordon    = "foreign-uncordon"
	ruleFence       = "eviction-without-mark"
	ruleBudget      = "budget"
	ruleTwice       = "evicted-twice"
	ruleMark        = "unreadable-mark"
	ruleProcess     = "process-ended"
	ruleLeft        = "left-behind"
	ruleLimits      = "limits-lost"
	ruleStarted     = "started-twice"
)

// fenceSlack is how long a request may be on its way that was sent while the node carried the mark.
const fenceSlack = 2 * time.Second

// Violation is something that must never be, and when it was seen.
type Violation struct {
	At   time.Time `json:"at"`
	Rule string    `json:"rule"`
	Node string    `json:"node,omitempty"`
	What string    `json:"what"`
	// Last is what was done to the node, or at all, before that.
	Last []Entry `json:"last,omitempty"`
}

// nodeFacts is what the judge knows of a node.
type nodeFacts struct {
	zone        string
	holders     []k8s.Holder
	unavailable bool
	cordoned    bool
	// foreign: somebody else made it unschedulable, and only they may undo that.
	foreign bool
	// heldUntil is when its mark was seen last, once it has gone.
	heldUntil time.Time
}

func (n *nodeFacts) held() bool { return len(n.holders) > 0 }

// judge looks at every version of every node and pod, in the order in which they were made, and finds what must never be.
type judge struct {
	report func(Violation)

	nodes       map[string]*nodeFacts
	parallel    *ceiling
	unavailable *ceiling
	zones       map[string]*ceiling
	zoneLimit   int
	pods        *podBook
}

func newJudge(parallel, unavailable, zone int, minAvailable map[string]int, report func(Violation)) *judge {
	j := &judge{
		report: report, nodes: map[string]*nodeFacts{},
		parallel: newCeiling(parallel, 0), unavailable: newCeiling(unavailable, observationLag),
		zones: map[string]*ceiling{}, zoneLimit: zone,
	}
	j.pods = newPodBook(minAvailable, report)
	return j
}

// limits says which limits may be in force from now on.
func (j *judge) limits(now time.Time, parallel, unavailable []int) {
	j.parallel.set(now, parallel...)
	j.unavailable.set(now, unavailable...)
}

// node judges a new version of a node. cordonedBy tells that this version was made by the soak's own operator, who is no
// part of Drydock.
func (j *judge) node(at time.Time, n *corev1.Node, byOperator bool) {
	before, known := j.nodes[n.Name]
	if !known {
		before = &nodeFacts{}
	}
	mark, err := k8s.MarkOf(n)
	if err != nil {
		j.report(Violation{At: at, Rule: ruleMark, Node: n.Name, What: err.Error()})
		return
	}
	now := &nodeFacts{
		zone: n.Labels[corev1.LabelTopologyZone], holders: mark.Holders, cordoned: n.Spec.Unschedulable,
		foreign: before.foreign, heldUntil: before.heldUntil,
	}
	now.unavailable = now.cordoned || !isNodeReady(n)
	j.nodes[n.Name] = now
	if known {
		j.judgeCordon(at, n.Name, before, now, byOperator)
	}
	j.judgeHold(at, n.Name, before, now)
}

// gone forgets a node that was deleted.
func (j *judge) gone(name string) { delete(j.nodes, name) }

func (j *judge) judgeCordon(at time.Time, name string, before, now *nodeFacts, byOperator bool) {
	switch {
	case !before.cordoned && now.cordoned && byOperator:
		now.foreign = true
	case before.cordoned && !now.cordoned:
		if before.foreign && !byOperator {
			j.report(Violation{At: at, Rule: ruleUncordon, Node: name, What: "it was uncordoned, and somebody else than Drydock had cordoned it"})
		}
		now.foreign = false
	}
}

func (j *judge) judgeHold(at time.Time, name string, before, now *nodeFacts) {
	wasOut, isOut := before.held() || before.unavailable, now.held() || now.unavailable
	switch {
	case !before.held() && now.held():
		j.judgeGrant(at, name, now, !wasOut)
	case before.held() && !now.held():
		now.heldUntil = at
		j.parallel.lower(at)
		j.zone(now.zone).lower(at)
	case !wasOut && isOut:
		// Nobody granted that.
		j.unavailable.raise()
	}
	if wasOut && !isOut {
		j.unavailable.lower(at)
	}
	if len(now.holders) > 1 && len(now.holders) > len(before.holders) {
		j.report(Violation{At: at, Rule: ruleOneHolder, Node: name, What: fmt.Sprintf("%d maintenances hold it at once: %s", len(now.holders), holderNames(now.holders))})
	}
}

// judgeGrant judges that a node is held from now on; costs tells that it was in service before.
func (j *judge) judgeGrant(at time.Time, name string, now *nodeFacts, costs bool) {
	held, inZone, out := 0, 0, 0
	for _, n := range j.nodes {
		if n.held() {
			held++
			if n.zone == now.zone {
				inZone++
			}
		}
		if n.held() || n.unavailable {
			out++
		}
	}
	check := func(rule string, count, bound, limit int) {
		if count > bound {
			j.report(Violation{At: at, Rule: rule, Node: name, What: fmt.Sprintf("%d, at most %d could have been granted (the limit is %d); held by %s",
				count, bound, limit, holderNames(now.holders))})
		}
	}
	check(ruleParallel, held, j.parallel.at(at), j.parallel.limit)
	check(ruleGroup, inZone, j.zone(now.zone).at(at), j.zoneLimit)
	if costs {
		check(ruleUnavailable, out, j.unavailable.at(at), j.unavailable.limit)
	}
}

func (j *judge) zone(name string) *ceiling {
	if j.zones[name] == nil {
		j.zones[name] = newCeiling(j.zoneLimit, 0)
	}
	return j.zones[name]
}

// pod judges a new version of a pod.
func (j *judge) pod(at time.Time, p *corev1.Pod, gone bool) {
	if began := j.pods.see(at, p, gone); !began || p.Spec.NodeName == "" {
		return
	}
	n := j.nodes[p.Spec.NodeName]
	if n == nil || !n.held() && at.Sub(n.heldUntil) > fenceSlack {
		j.report(Violation{At: at, Rule: ruleFence, Node: p.Spec.NodeName, What: fmt.Sprintf("pod %s/%s was told to end (%s), and the node carries no mark",
			p.Namespace, p.Name, endedBy(p))})
	}
}

// held counts the nodes that carry a mark.
func (j *judge) held() int {
	count := 0
	for _, n := range j.nodes {
		if n.held() {
			count++
		}
	}
	return count
}

func isNodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func holderNames(holders []k8s.Holder) string {
	text := ""
	for _, h := range holders {
		text += fmt.Sprintf(" %s (run %s, acting %s)", h.WorkflowID, h.RunID, h.Run)
	}
	return text
}
