package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestPodsThatComeToADrainedNodeAreAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		in     workflowtest.Input
		warned bool
	}{
		"drained":     {nil, true},
		"not drained": {workflowtest.Input{"drain": workflowtest.Input{"mode": "none"}}, false},
		"of namespaces that leave": {
			workflowtest.Input{"drain": workflowtest.Input{"namespaces": workflowtest.Input{"exclude": []string{"kube-system"}}}}, true,
		},
		"of namespaces that stay": {
			workflowtest.Input{"drain": workflowtest.Input{"namespaces": workflowtest.Input{"exclude": []string{"default"}}}}, false,
		},
		"drained in part": {workflowtest.Input{"drain": workflowtest.Input{"podSelector": "app=web"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			later := s.Env.Now().Add(10 * time.Minute)
			change := api.NodeChange{Arrived: &api.PodsArrived{Pods: []api.ArrivedPod{
				{Pod: "default/early", At: s.Env.Now().Add(-time.Hour)}, {Pod: "default/late", At: later},
			}}}
			changedAt(s, 10*time.Minute, change)
			changedAt(s, 11*time.Minute, change) // another worker tells again
			s.DoneAt(30 * time.Minute)
			status := s.Run(workflowtest.InputWith(c.in))
			s.ExpectCompleted()
			warned := 0
			for i := range s.Count("AnnouncePhase") {
				event := workflowtest.InputOf[node.AnnounceInput](s, "AnnouncePhase", i).Event
				if event.Reason == "PodArrived" && event.Warning && strings.Contains(event.Message, "default/late arrived") {
					warned++
				}
			}
			if !c.warned {
				if len(status.Arrived) > 0 || warned > 0 {
					t.Errorf("arrived %+v, %d warnings", status.Arrived, warned)
				}
				return
			}
			if len(status.Arrived) != 1 || status.Arrived[0].Pod != "default/late" || warned != 1 {
				t.Errorf("arrived %+v, %d warnings", status.Arrived, warned)
			}
			if !strings.Contains(workflowtest.MessagesOf(status), "default/late arrived after the drain") {
				t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
			}
		})
	}
}
