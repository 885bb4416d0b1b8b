package plan

import (
	"io"
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
)

// A plan asks for what its maintenances need, and is not started where the worker lacks some of it.
func TestAPlanWhoseMaintenancesLackAPermissionIsNotStarted(t *testing.T) {
	const nodes = "strategy: {type: allAtOnce}\nnodes: [a]\n"
	for name, c := range map[string]struct {
		file string
		args []string
		// evicts and deletes are what the drain needs of pods.
		evicts, deletes bool
	}{
		"by flags":              {"", []string{"a"}, true, false},
		"by flags over a file":  {"nodes: [a]\nmaintenance: {drain: {mode: wait}}\n", []string{"--drain-mode", "evict"}, true, false},
		"by a file":             {"nodes: [a]\nmaintenance: {drain: {mode: wait}}\n", nil, false, false},
		"one that skips nodes":  {"", []string{"a", "--on-blocked", "skip", "--blocked-after", "20m"}, true, false},
		"one that bypasses":     {"nodes: [a]\nmaintenance: {drain: {escalation: [{after: 1h, do: bypassBudget}]}}\n", nil, true, true},
		"all at once":           {nodes, nil, true, true},
		"without DaemonSets":    {nodes + "drainPlan: {include: [Default]}\n", nil, true, false},
		"KEP-4212's object":     {kepFile, nil, true, true},
		"from stage Idle":       {nodes + "stage: Idle\n", nil, true, true},
		"after a time to begin": {"nodes: [a]\nmaintenance: {notBefore: 2020-01-01T00:00:00Z}\n", nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, p, err := madeOf(t, c.file, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			server := &startertest.Asked{Polled: true, Report: api.PermissionsReport{Missing: []preflight.Finding{{Message: "may not: apply rbac.yaml"}}}}
			to := &invocation.Connection{Client: client.New(server, client.Options{Now: time.Now}), Clock: time.Now}
			o := &createOptions{app: invocation.New(invocation.Process{Stderr: io.Discard})}
			err = o.permitted(t.Context(), to, "kernel", p)
			if exit.CodeOf(err) != exit.WouldStop || err.Error() != "plan kernel was not started: may not: apply rbac.yaml" {
				t.Errorf("%v", err)
			}
			m, err := spec.Decode(server.Input.(api.PermissionsInput).Maintenance, nil)
			if err != nil {
				t.Fatal(err)
			}
			var verbs []string
			for _, need := range preflight.Needs(m.Judged(), false) {
				if need.Resource == "pods" && need.Group == "" {
					verbs = append(verbs, need.Verb)
				}
			}
			if slices.Contains(verbs, "create") != c.evicts || slices.Contains(verbs, "delete") != c.deletes {
				t.Errorf("asked for %q", verbs)
			}
		})
	}
}

// kepFile is a plan as -o kep prints it.
const kepFile = `{"apiVersion":"maintenance.example/v1alpha1","kind":"NodeMaintenance","metadata":{"name":"kernel"},
"spec":{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]},"stage":"Drain"}}`
