package show

import (
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/startertest"
)

func TestLineNamesAnotherRequestor(t *testing.T) {
	v := startertest.View(api.Ready)
	if l := LineOf(v, "ops", startertest.Noon); l.Label != "worker-01" || l.Age != 5*time.Minute {
		t.Errorf("line = %+v", l)
	}
	if l := LineOf(v, "jane", startertest.Noon); l.Label != "worker-01 (ops)" {
		t.Errorf("line = %+v", l)
	}
}
