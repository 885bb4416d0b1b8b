package e2e

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
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
	s := newSite(t, ourPolicy+"scheduler: {maxParallel: 1}\n")
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

	forced := s.beginWith("worker-01", `"drain":{"force":true}`)
	_, err := s.end(forced)
	refused(forced, err, "policy no-force: it requires !maintenance.drain.force")
	intern := s.start("worker-01", "intern", `{"node":"worker-01","requestor":"intern"}`)
	_, err = s.end(intern)
	refused(intern, err, "quota: intern may not ask for nodes")
	if touched := s.touched(); len(touched) > 0 {
		t.Errorf("touched: %+v", touched)
	}

	approved := s.beginWith("worker-02", `"approval":true`)
	s.until(approved, api.AwaitingApproval)
	s.signal(approved, api.MsgApprove, map[string]string{"by": "ops", "comment": "my own"})
	s.untilStatus(approved, "the policy has refused", func(status api.Status) bool {
		return len(status.Messages) == 1 && status.Messages[0].Effect == "ignored: policy no-slip: it requires approval.by != maintenance.requestor"
	})
	if status := s.mustStatus(approved); status.Phase != api.AwaitingApproval || status.Approval != nil {
		t.Errorf("%s, approval %+v", status.Phase, status.Approval)
	}
	s.mustDrydock("approve", "worker-02", "--comment", "go")
	s.until(approved, api.Ready)

	// The node comes into production while its maintenance waits for the slot.
	changed := s.begin("worker-03")
	s.waitsFor(changed, "maxParallel")
	s.patchNode("worker-03", `{"metadata":{"labels":{"e2e-env":"production"}}}`)
	t.Cleanup(func() { s.patchNode("worker-03", `{"metadata":{"labels":{"e2e-env":null}}}`) })
	s.done(approved)
	_, err = s.end(changed)
	refused(changed, err, "policy production-needs-approval: production nodes need somebody's approval")
	s.mustBeFree("worker-03")
	s.slotFree("worker-03")
}
