package invocation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/client"
)

func TestErrorsOfTemporalSayWhatToDo(t *testing.T) {
	c := &Connection{Address: "host:7233", Namespace: "ops"}
	for name, c2 := range map[string]struct {
		err  error
		want []string
		away bool
	}{
		"namespace":   {serviceerror.NewNamespaceNotFound("ops"), []string{`no namespace "ops"`, "temporal operator namespace create -n ops"}, false},
		"unavailable": {serviceerror.NewUnavailable("refused"), []string{"host:7233 is not reachable", "refused", "TEMPORAL_ADDRESS"}, true},
		"cut off":     {serviceerror.NewUnavailable("stream terminated by RST_STREAM with error code: CANCEL"), []string{"not reachable: the connection broke off\n"}, true},
		"too slow":    {serviceerror.NewDeadlineExceeded("context deadline exceeded"), []string{"not reachable: no answer in time\n"}, true},
		"denied":      {serviceerror.NewPermissionDenied("no", ""), []string{"refuses access", "TEMPORAL_API_KEY"}, false},
		"a role":      {serviceerror.NewPermissionDenied("no", "approve is for approvers"), []string{"refuses access", "no: approve is for approvers"}, false},
		"no keys":     {fmt.Errorf("encoding binary/encrypted: %w", converter.ErrEncodingIsNotSupported), []string{"DRYDOCK_CODEC_KEYS_FILE"}, false},
		"other":       {errors.New("odd"), []string{"doing it: odd"}, false},
	} {
		err := c.Explain(&client.CallError{Doing: "doing it", Err: c2.err})
		for _, want := range c2.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q, want %q in it", name, err, want)
			}
		}
		if errors.Is(err, client.ErrUnreachable) != c2.away {
			t.Errorf("%s: worth another try: %v, want %v", name, !c2.away, c2.away)
		}
	}
	if c.Explain(nil) != nil {
		t.Error("no error became one")
	}
}
