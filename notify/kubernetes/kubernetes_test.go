package kubernetes_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/kubernetes"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{kubernetes.Kind}

func TestKubernetes(t *testing.T) {
	cfg, err := notifytest.Parse(t, kinds, `{"oncall": {"kubernetes": {}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notify.New(cfg, nil, ""); err == nil || !strings.HasPrefix(err.Error(), "channels.oncall.kubernetes: ") {
		t.Errorf("without a client: %v", err)
	}
	r := &notifytest.Recorder{}
	s, err := notify.New(cfg, r, "")
	if err != nil {
		t.Fatal(err)
	}
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.SLAExpired)))
	other := notifytest.Event(notices.MaintenanceComplete)
	other.ID, other.Node, other.Blockers, other.MoreBlockers = "other", "worker-2", nil, 0
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted), other))
	key := notifytest.Message().Key
	for i, want := range []string{
		"worker-1 " + key + " SLAExpired warning=true not empty in the agreed time, what is left may be removed by force, for ops.example.com: new firmware (CHG-1); " +
			"waiting for pod web/web-0: its budget allows no disruption and 2 more",
		"worker-1 " + key + "/node-maintenance/worker-1/ops/run/3 MaintenanceStarted warning=false cordoned, the drain has begun, for ops.example.com",
		"worker-2 " + key + "/other MaintenanceComplete warning=false maintenance is complete, the node is back in service, for ops.example.com: new firmware (CHG-1)",
	} {
		if !strings.HasPrefix(r.Events[i], want) {
			t.Errorf("%s\nwant %s", r.Events[i], want)
		}
	}
	for _, c := range []struct {
		err       error
		permanent bool
	}{
		{errors.New("connection refused"), false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil), false},
		{apierrors.NewBadRequest("no"), true},
		{apierrors.NewTooManyRequests("busy", 3), false},
	} {
		r.Err = c.err
		if _, err := s.Send(t.Context(), "oncall", notifytest.Message(other)); err == nil || notify.Permanent(err) != c.permanent {
			t.Errorf("%v: permanent %v", err, notify.Permanent(err))
		}
	}
}
