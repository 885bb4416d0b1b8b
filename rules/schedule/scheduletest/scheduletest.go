// Package scheduletest makes clusters on which decisions are measured.
package scheduletest

import (
	"fmt"
	"time"

	"drydock.dev/drydock/rules/schedule"
)

// Cluster has 3 zones and racks of 40 nodes, one node in 50 unavailable, a request for every third node of a handful
// of requestors, and one maintenance per hundred nodes.
func Cluster(nodes int, limits schedule.Limits) (schedule.Input, error) {
	limits.Groups = []schedule.Group{
		{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Percent(10)},
		{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Percent(20)},
		{Name: "rack", GroupBy: []string{"zone", "rack"}, MaxUnavailable: schedule.Count(4)},
	}
	grouper, err := schedule.NewGrouper(limits.Groups)
	if err != nil {
		return schedule.Input{}, err
	}
	epoch := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	in := schedule.Input{Limits: limits, Observed: &schedule.Observation{
		Nodes: nodes, Groups: map[string]schedule.GroupCount{}, Facts: map[string]schedule.NodeFacts{},
	}}
	for i := range nodes {
		name := fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&255, i&255)
		labels := map[string]string{"zone": string(rune('a' + i%3)), "rack": fmt.Sprint(i / 40)}
		if i%5 == 0 {
			labels["pool"] = "gpu"
		}
		facts := schedule.NodeFacts{Unavailable: i%50 == 0, Groups: grouper.Keys(labels)}
		for _, key := range facts.Groups {
			count := in.Observed.Groups[key]
			count.Nodes++
			if facts.Unavailable {
				count.Unavailable++
			}
			in.Observed.Groups[key] = count
		}
		if facts.Unavailable {
			in.Observed.Unavailable++
		}
		switch {
		case i%3 == 0:
			in.Observed.Facts[name] = facts
			in.Pending = append(in.Pending, schedule.Request{
				ID: fmt.Sprintf("node-maintenance/%s/team-%d", name, i%7), Node: name, Requestor: fmt.Sprintf("team-%d", i%7),
				Created: epoch.Add(time.Duration(i*7919%nodes) * time.Second),
			})
		case i%100 == 1:
			in.Observed.Facts[name] = facts
			in.Granted = append(in.Granted, schedule.Grant{RequestID: name, Node: name, Requestor: "team-1"})
		}
	}
	return in, nil
}

// InGangs makes the requests of a cluster members of gangs of so many nodes each.
func InGangs(in schedule.Input, size int) schedule.Input {
	for i := range in.Pending {
		of := min(size, len(in.Pending)-i/size*size)
		in.Pending[i].Gang = &schedule.Gang{Name: fmt.Sprint("maintenance-plan/wave-", i/size), Size: of}
	}
	return in
}
