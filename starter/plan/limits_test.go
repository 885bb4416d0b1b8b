package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
)

// A dry run counts with the limits in force: it says which the plan is larger than, and how long it takes under them.
func TestAPlanThatIsLargerThanTheLimitsSaysSo(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		input, limit string
		want         string
		turns        int // 0 is that there is no estimate
	}{
		"waves of two, one at a time": {
			`{"nodes":["a","b","c","d","e"],"strategy":{"maxParallel":2}}`, "1",
			"the plan goes slower than it may: needs 2 slots at once; maxParallel is 1: drydock limits set --max-parallel 2", 5,
		},
		"waves of two, two at a time": {`{"nodes":["a","b","c","d","e"],"strategy":{"maxParallel":2}}`, "2", "", 3},
		"waves of five, two at a time": {
			`{"nodes":["a","b","c","d","e"],"strategy":{"maxParallel":5}}`, "2",
			"the plan goes slower than it may: needs 5 slots at once; maxParallel is 2: drydock limits set --max-parallel 5", 3,
		},
		"a gang that can never begin": {
			`{"nodes":["a","b","c","d","e"],"strategy":{"type":"allAtOnce"}}`, "1",
			"the plan does not begin: needs 5 slots at once; maxParallel is 1: drydock limits set --max-parallel 5", 0,
		},
		"a gang that can": {`{"nodes":["a","b","c","d","e"],"strategy":{"type":"allAtOnce"}}`, "5", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Decode("firmware", []byte(c.input))
			if err != nil {
				t.Fatal(err)
			}
			limit, err := schedule.ParseAmount(c.limit)
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := schedule.LookAhead(schedule.Limits{MaxParallel: limit}, len(nodes), nil)
			if err != nil {
				t.Fatal(err)
			}
			var chosen choice
			for _, name := range nodes {
				chosen.nodes = append(chosen.nodes, plan.Facts{Name: name})
			}
			groups := waves(p, chosen, time.Unix(0, 0))
			if got := strings.Join(short(p, ahead, groups), "\n"); got != c.want {
				t.Errorf("it says\n%s, want\n%s", got, c.want)
			}
			turns, known := allowed(p, ahead, groups)
			if known != (c.turns > 0) {
				t.Fatalf("known: %t", known)
			}
			if !known {
				return
			}
			if got := slices.Sorted(slices.Values(slices.Concat(turns...))); !slices.Equal(got, nodes) {
				t.Errorf("the turns are %v", turns)
			}
			if got, want := plan.Estimate(p.Strategy, turns, time.Hour), time.Duration(c.turns)*time.Hour; got != want {
				t.Errorf("it takes %s in the turns %s, want %s", got, fmt.Sprint(turns), want)
			}
		})
	}
}

// answers are those of workflows to queries, by workflow ID. within is the least time that was left for the plan's.
type answers struct {
	startertest.Asked
	of     map[string]any
	within time.Duration
}

func (a *answers) QueryWorkflow(ctx context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
	if deadline, has := ctx.Deadline(); has && id != api.SchedulerID("") {
		a.within = min(a.within, time.Until(deadline))
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(a.of[id])
	return temporalclient.NewValue(payloads), err
}

func (a *answers) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}, nil
}

// kubeconfig leads to a cluster of nodes with these names, all of one group.
func kubeconfig(t *testing.T, names ...string) string {
	t.Helper()
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"rack":"1"}}}`, name))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[%s]}`, strings.Join(items, ","))
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The nodes of a cluster that the plan is not of, such as that of a kubeconfig of somewhere else, say nothing of its limits.
func TestThePlansClusterIsNotThatOfAnyKubeconfig(t *testing.T) {
	limits := schedule.Limits{}
	if err := json.Unmarshal([]byte(`{"maxParallel":"50%","groups":[{"name":"rack","label":"rack","maxParallel":1}]}`), &limits); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode("kernel", []byte(`{"nodes":["a","b"],"strategy":{"maxParallel":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	status := api.PlanStatus{Name: "kernel", Plan: p, Phase: api.PlanRunning, Counts: plan.Counts{Total: 2, Waiting: 2}, Nodes: []api.PlanNode{{Node: "a"}, {Node: "b"}}}
	for name, c := range map[string]struct {
		nodes []string
		want  string
	}{
		"its own":      {[]string{"a", "b", "c", "d"}, "group rack maxParallel is 1"},
		"another's":    {[]string{"x", "y"}, ""},
		"an empty one": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := &answers{Asked: startertest.Asked{Polled: true}, within: time.Hour}
			connection := &invocation.Connection{Client: client.New(server, client.Options{Now: time.Now}), Clock: time.Now}
			of := client.PlanOf(connection.Client, "kernel")
			server.of = map[string]any{
				api.SchedulerID(""): api.State{Nodes: 4, Limits: api.LimitsInForce{Limits: limits}}, of.WorkflowID(): status,
			}
			app := invocation.New(invocation.Process{Args: []string{"drydock"}, Environ: []string{"KUBECONFIG=" + kubeconfig(t, c.nodes...)}, Stderr: io.Discard})
			said := strings.Join(aheadOfStatus(t.Context(), app, connection, of, &status), "\n")
			if c.want == "" && said != "" || !strings.Contains(said, c.want) {
				t.Errorf("it says %q, want %q", said, c.want)
			}
			if server.within > labelsWithin {
				t.Errorf("the plan had %s to say which nodes are left", server.within)
			}
		})
	}
}
