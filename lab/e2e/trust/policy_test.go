package trust

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// ourPolicy is a policy of three kinds: of the input, of the node, and of the approval.
const ourPolicy = `
policy:
- name: production-needs-approval
  when: node.labels[?"e2e-env"].orValue("") == "production"
  require: maintenance.approval
  message: production nodes need somebody's approval
- name: no-slip # it compares claims, which stops slips alone
  require: approval.by != maintenance.requestor
- name: no-force
  require: "!maintenance.drain.force"
quotas: {requestors: {intern: {pending: 0}}}
`

// TestAPolicyIsJudged begins what rules refuse, at the beginning, at the approval and before the node is held.
func TestAPolicyIsJudged(t *testing.T) {
	s := site.New(t, ourPolicy+"scheduler: {maxParallel: 1}\n")
	refused := func(run interface{ GetID() string }, err error, names ...string) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was not refused", run.GetID())
			return
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v does not name %s", run.GetID(), err, name)
			}
		}
	}

	forced := s.BeginWith("worker-01", `"drain":{"force":true}`)
	_, err := s.End(forced)
	refused(forced, err, "policy no-force: it requires !maintenance.drain.force")
	intern := s.Start("worker-01", "intern", `{"node":"worker-01","requestor":"intern"}`)
	_, err = s.End(intern)
	refused(intern, err, "quota: intern may not ask for nodes")
	if touched := s.Touched(); len(touched) > 0 {
		t.Errorf("touched: %+v", touched)
	}

	approved := s.BeginWith("worker-02", `"approval":true`)
	s.Until(approved, api.AwaitingApproval)
	s.Signal(approved, api.MsgApprove, map[string]string{"by": "ops", "comment": "my own"})
	s.UntilStatus(approved, "the policy has refused", func(status api.Status) bool {
		return len(status.Messages) == 1 && status.Messages[0].Effect == "ignored: policy no-slip: it requires approval.by != maintenance.requestor"
	})
	if status := s.MustStatus(approved); status.Phase != api.AwaitingApproval || status.Approval != nil {
		t.Errorf("%s, approval %+v", status.Phase, status.Approval)
	}
	s.MustDrydock("approve", "worker-02", "--comment", "go")
	s.Until(approved, api.Ready)

	// The node comes into production while its maintenance waits for the slot.
	changed := s.Begin("worker-03")
	s.WaitsFor(changed, "maxParallel")
	s.PatchNode("worker-03", `{"metadata":{"labels":{"e2e-env":"production"}}}`)
	t.Cleanup(func() { s.PatchNode("worker-03", `{"metadata":{"labels":{"e2e-env":null}}}`) })
	s.Done(approved)
	_, err = s.End(changed)
	refused(changed, err, "policy production-needs-approval: production nodes need somebody's approval")
	s.MustBeFree("worker-03")
	s.SlotFree("worker-03")
}
