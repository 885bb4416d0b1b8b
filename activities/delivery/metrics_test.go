package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Channels of the configuration have series, and whatever else somebody names has one together.
func TestDeliveriesAreCountedByChannelAndKind(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewMetrics(registry, map[string]string{"oncall": "slack", "bus": "sns"})
	m.delivered("oncall", nil)
	m.delivered("oncall", errors.New("no such luck"))
	for i := range 50 {
		m.delivered(fmt.Sprint("made-up-", i), errors.New("no such channel"))
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP drydock_delivery_attempts_total Attempts to deliver a message to a channel, by what became of them: delivered or failed.
# TYPE drydock_delivery_attempts_total counter
drydock_delivery_attempts_total{channel="bus",kind="sns",outcome="delivered"} 0
drydock_delivery_attempts_total{channel="bus",kind="sns",outcome="failed"} 0
drydock_delivery_attempts_total{channel="oncall",kind="slack",outcome="delivered"} 1
drydock_delivery_attempts_total{channel="oncall",kind="slack",outcome="failed"} 1
drydock_delivery_attempts_total{channel="other",kind="other",outcome="failed"} 50
`)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
