package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/inbox"
)

// TestALongPayloadIsRefusedUnread: its size is the error, whatever else is wrong with it.
func TestALongPayloadIsRefusedUnread(t *testing.T) {
	for _, raw := range []string{
		`{"comment":"` + strings.Repeat("a", 512<<10) + `"}`,
		`{"comment":[` + strings.Repeat("null,", 200<<10),
		strings.Repeat("<", 2<<20),
	} {
		payload, err := inbox.Decode[api.Message]([]byte(raw))
		if err == nil || !strings.Contains(err.Error(), "the payload has") || payload != (api.Message{}) {
			t.Errorf("%d bytes: %v", len(raw), err)
		}
	}
	// What is cut to its limit later is no reason to refuse a message.
	raw, err := json.Marshal(api.Message{By: "ops", Comment: strings.Repeat("<", 80<<10)})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := inbox.Decode[api.Message](raw)
	if err != nil || payload.By != "ops" {
		t.Errorf("%d bytes: %q, %v", len(raw), payload.By, err)
	}
}
