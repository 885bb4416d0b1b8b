package trust

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// foreign are names that would mean something else in an ID, a URL, a list query, a template, a patch or a shell.
var foreign = []string{
	"../pods/x", "worker-01/status", "worker-01/../worker-02", "worker-01?dryRun=All", "worker-01%2fstatus", "worker-01#x",
	`worker-01" OR WorkflowType="Scheduler`, "worker-01' OR '1'='1", "worker-01\nworker-02", "worker-01\x00", "{{.Node}}", "{node}",
	"$(reboot)", "`reboot`", ";reboot", "*", "-l", "--all", "wörker", `{"a":1}`, "worker-01,worker-02",
}

func TestForeignNamesAreRefusedEverywhere(t *testing.T) {
	s := site.New(t, "")
	var runs []client.WorkflowRun
	var inputs []string
	for i, name := range foreign {
		for field, input := range map[string]string{
			"node": fmt.Sprintf(`{"node":%q}`, name), "requestor": fmt.Sprintf(`{"node":"worker-01","requestor":%q}`, name),
			"additionalRequestors": fmt.Sprintf(`{"node":"worker-01","requestor":"ops","additionalRequestors":[%q]}`, name),
		} {
			input = strings.ReplaceAll(input, `\x00`, `\u0000`) // Go's escape is not JSON's
			run, err := s.StartAs(fmt.Sprintf("%s/foreign-%s-%d", s.ID, field, i), input)
			if err != nil {
				t.Fatal(err)
			}
			runs, inputs = append(runs, run), append(inputs, field+" "+input)
		}
	}
	for i, run := range runs {
		s.Sub(inputs[i], func(s *site.Site) { s.Refused(run, strings.Fields(inputs[i])[0]) })
	}
	s.Sub("command line", func(s *site.Site) {
		for _, name := range foreign {
			if strings.ContainsRune(name, 0) {
				continue // no command line can have it
			}
			for _, args := range [][]string{
				{"start", "--", name}, {"status", "--", name}, {"done", "--", name}, {"cancel", "--", name}, {"list", "--", name},
				{"preflight", "--", name}, {"start", "worker-01", "--requestor=" + name}, {"done", "worker-01", "--requestor=" + name},
				{"--cluster=" + name, "list"},
			} {
				if r := s.Drydock(args...); r.Status == 0 {
					s.Errorf("drydock %q succeeds:\n%s", args, r.Out())
				}
			}
		}
	})
	s.Sub("selectors", func(s *site.Site) {
		for _, selector := range []string{"app=x&fieldSelector=a", "a=b%0a", "app in (", "a=b;c", "{{.}}", "a='b'"} {
			if r := s.Drydock("rollout", "--yes", "--selector", selector, "--", "true"); r.Status == 0 {
				s.Errorf("selector %q is accepted:\n%s", selector, r.Out())
			}
		}
	})
	if touched := s.Touched(); len(touched) > 0 {
		t.Errorf("nodes were touched: %+v", touched)
	}
	if asked := s.SignalsTo(api.SchedulerID(s.Cluster)); len(asked) > 0 {
		t.Errorf("the scheduler was asked: %v", asked)
	}
}
