package site

import (
	"errors"
	"fmt"
	"strings"

	"drydock.dev/drydock/api"
)

// PodsByApp are the nodes of a namespace's pods, by workload and UID.
func (s *Site) PodsByApp(ns string) map[string]map[string]string {
	s.Helper()
	found := map[string]map[string]string{}
	for _, pod := range s.Pods(ns) {
		app := pod.Labels["app"]
		if found[app] == nil {
			found[app] = map[string]string{}
		}
		found[app][string(pod.UID)] = pod.Spec.NodeName
	}
	return found
}

// WaitsFor waits until a maintenance is told why it has no slot, and returns the reason.
func (s *Site) WaitsFor(run interface{ GetID() string }, reason string) string {
	s.Helper()
	var found string
	s.Eventually(run.GetID()+" waits for "+reason, func() error {
		for _, p := range s.State().Pending {
			if api.MaintenanceID(s.Cluster, p.Node, p.Requestor) == run.GetID() {
				if found = p.Reason; strings.Contains(found, reason) {
					return nil
				}
				return fmt.Errorf("it waits for %q", found)
			}
		}
		return errors.New("it does not wait")
	})
	return found
}
