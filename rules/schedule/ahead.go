package schedule

import (
	"fmt"

	"drydock.dev/drydock/rules/number"
)

// Ahead is what limits make of nodes before they ask for slots. What is in use now does not count: it may be over by then.
type Ahead struct {
	limits Limits
	// nodes counts those of the cluster, sizes those of each group by its key; groups are the keys of each node.
	nodes  int
	sizes  map[string]int
	groups map[string][]string
}

// LookAhead takes limits, the number of the cluster's nodes, and their labels by name. Without labels groups do not count.
func LookAhead(limits Limits, nodes int, labels map[string]map[string]string) (Ahead, error) {
	a := Ahead{limits: limits.WithDefaults(), nodes: nodes, sizes: map[string]int{}, groups: map[string][]string{}}
	grouper, err := NewGrouper(limits.Groups)
	if err != nil {
		return a, err
	}
	for name, of := range labels {
		a.groups[name] = grouper.Keys(of)
		for _, key := range a.groups[name] {
			a.sizes[key]++
		}
	}
	return a, nil
}

// Short is a limit that lets fewer nodes go at once than are to.
type Short struct {
	// Limit is the limit as people write it, such as "maxParallel is 1".
	Limit         string
	Needs, Allows int
	// Makes says what the nodes take of it, such as "needs 2 slots at once".
	Makes string
	// Command raises the limit.
	Command string
}

// String is the shortfall with the command that ends it.
func (s Short) String() string { return fmt.Sprintf("%s; %s: %s", s.Makes, s.Limit, s.Command) }

// Short says which limits are smaller than what a requestor needs for nodes that go in such waves, each limit once: by the
// wave that needs most of it.
func (a Ahead) Short(requestor string, waves [][]string) []Short {
	var all []Short
	at := map[string]int{}
	for _, wave := range waves {
		for _, s := range a.short(requestor, wave) {
			i, known := at[s.Limit]
			switch {
			case !known:
				at[s.Limit] = len(all)
				all = append(all, s)
			case s.Needs > all[i].Needs:
				all[i] = s
			}
		}
	}
	return all
}

// Rounds is in how many turns the limits let a wave go: 1 where they let it go at once, 0 where one of them lets no node go.
func (a Ahead) Rounds(requestor string, wave []string) int {
	rounds := 1
	for _, s := range a.short(requestor, wave) {
		if s.Allows <= 0 {
			return 0
		}
		rounds = max(rounds, (s.Needs+s.Allows-1)/s.Allows)
	}
	return rounds
}

// short are the limits that are smaller than what a wave needs: the cluster's, those of groups, and the requestor's quota.
func (a Ahead) short(requestor string, wave []string) []Short {
	all := shortOf("", "", a.limits.MaxParallel, a.limits.MaxUnavailable, len(wave), a.nodes)
	needs := map[string]int{}
	var keys []string
	for _, node := range wave {
		for _, key := range a.groups[node] {
			if needs[key]++; needs[key] == 1 {
				keys = append(keys, key)
			}
		}
	}
	for _, key := range keys {
		if group, known := a.limits.Group(key); known {
			all = append(all, shortOf("group "+key+" ", " --group "+group.Name, group.MaxParallel, group.MaxUnavailable, needs[key], a.sizes[key])...)
		}
	}
	if held := a.limits.Quotas.Of(requestor).Held; held != nil && len(wave) > *held {
		all = append(all, Short{
			Limit: fmt.Sprintf("the quota of %s is %d", requestor, *held), Needs: len(wave), Allows: *held,
			Makes:   "needs " + number.Of(len(wave), "slot") + " at once",
			Command: fmt.Sprintf("%s --held %s=%d", setLimits, requestor, len(wave)),
		})
	}
	return all
}

// shortOf compares what some of a total of nodes need with the limits of one scope.
func shortOf(of, scope string, parallel, unavailable Amount, needs, total int) []Short {
	var all []Short
	if allows := parallel.Of(total); needs > allows {
		all = append(all, Short{
			Limit: of + "maxParallel is " + resolved(parallel, total), Needs: needs, Allows: allows,
			Makes:   "needs " + number.Of(needs, "slot") + " at once",
			Command: setLimits + scope + " --max-parallel " + parallel.atLeast(needs, total).String(),
		})
	}
	if allows := unavailable.Of(total); needs > allows {
		all = append(all, Short{
			Limit: of + "maxUnavailable is " + resolved(unavailable, total), Needs: needs, Allows: allows,
			Makes:   "makes " + number.Of(needs, "node") + " unavailable at once",
			Command: setLimits + scope + " --max-unavailable " + unavailable.atLeast(needs, total).String(),
		})
	}
	return all
}

// resolved is an amount with what a percentage comes to.
func resolved(a Amount, total int) string {
	if a.kind != percent {
		return a.String()
	}
	return fmt.Sprintf("%s, %d of %s", a, a.Of(total), number.Of(total, "node"))
}
