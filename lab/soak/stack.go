package main

import (
	"context"
	"fmt"

	"drydock.dev/drydock/lab/world"
)

// firstLimits are in force from the beginning.
var firstLimits = limits{parallel: 6, unavailable: 12}

// zoneLimit is how many nodes of a zone may be held at a time; nobody changes it.
const zoneLimit = 4

// limits are what the soak changes of the scheduler's.
type limits struct{ parallel, unavailable int }

// stack is the servers that Drydock runs against, and its workers.
type stack struct {
	*world.World
	receiver *receiver
	bridge   *bridge
}

// start runs the workloads, the workers and the bridge.
func (s *stack) start(ctx context.Context, nodes int) (err error) {
	if err := populate(ctx, s.Cluster.Client, nodes); err != nil {
		return err
	}
	if err := s.StartWorkers(ctx, 2, s.config()); err != nil {
		return err
	}
	s.bridge, err = startBridge(ctx, s.World)
	return err
}

// config is the workers' configuration.
func (s *stack) config() string {
	return fmt.Sprintf(`scheduler:
  maxParallel: %d
  maxUnavailable: %d
  groups: [{name: zone, groupBy: [topology.kubernetes.io/zone], maxParallel: %d}]
channels:
  events: {webhook: {url: %q}, default: true, retryFor: 30m}
  digest: {webhook: {url: %q}, digest: 5s, retryFor: 30m}
hooks:
  sign-off: {signal: {}, deadline: 20s, onFailure: continue}
  ticket: {http: {url: %q}, deadline: 15s, onFailure: continue, closing: {http: {url: %q}}}
audit: {webhook: {url: %q}}
`, firstLimits.parallel, firstLimits.unavailable, zoneLimit,
		s.receiver.server.URL+"/events", s.receiver.server.URL+"/digest", s.receiver.server.URL+"/ticket", s.receiver.server.URL+"/ticket/close", s.receiver.server.URL+"/audit")
}
