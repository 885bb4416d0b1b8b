package workflowtest

import (
	"encoding/json"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
)

// The maintenance that tests run: of this node, by this requestor, in the run that the test environment makes.
const (
	Node      = "n1"
	Requestor = "ops"
	RunID     = "default-test-run-id"
)

// ID is the workflow ID of that maintenance.
var ID = api.MaintenanceID("", Node, Requestor)

// Input is a maintenance's JSON input.
type Input map[string]any

// InputWith is a minimal input with more fields.
func InputWith(fields Input) Input {
	in := Input{"node": Node, "requestor": Requestor}
	for name, value := range fields {
		in[name] = value
	}
	return in
}

// Payload is the input as a workflow receives it.
func (in Input) Payload(t *testing.T) converter.RawValue {
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return Raw(string(text))
}

// Raw is a payload of JSON text as it is, right or wrong.
func Raw(text string) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(text),
	})
}
