package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"drydock.dev/drydock/api"
)

// Spec is what an object asks for, as it was written: the fields of the workflow's input, and those of Origin. Absent, zero and set are told apart
// where the input is decoded.
type Spec struct{ Raw json.RawMessage }

// maxRequestedBy bounds the name of a user, in bytes.
const maxRequestedBy = 253

// Origin are the fields that a spec has beside those of the input.
type Origin struct {
	// RequestedBy is the name of the Kubernetes user who created the object, such as `system:serviceaccount:ci:rollout`.
	RequestedBy string `json:"requestedBy,omitempty" jsonschema:"maxLength=253"`
}

// MarshalJSON writes the spec as it was read.
func (s Spec) MarshalJSON() ([]byte, error) {
	if len(s.Raw) == 0 {
		return []byte("{}"), nil
	}
	return s.Raw, nil
}

// UnmarshalJSON keeps the spec as it is written.
func (s *Spec) UnmarshalJSON(data []byte) error {
	s.Raw = bytes.Clone(data)
	return nil
}

// DeepCopy is a spec of its own.
func (s Spec) DeepCopy() Spec { return Spec{Raw: slices.Clone(s.Raw)} }

// Absent are the fields of a maintenance that its object's name gives where the spec leaves them out.
func Absent(name string) map[string]string { return map[string]string{"requestor": name} }

// Annotation is the annotation by which a message is sent to what an object asked for. Its value is the comment.
func Annotation(message string) string { return "maintenance." + GroupVersion.Group + "/" + message }

// Messages are those that annotations of a NodeMaintenance send.
func Messages() []string {
	return []string{api.MsgApprove, api.MsgDeny, api.MsgDone, api.MsgFailed, api.MsgRetry, api.MsgCancel}
}

// Said is who sent a message by an annotation, as the message says it.
func Said(user string) string { return "kubernetes: " + user }

// RequestedBy is who created the object; empty where nobody says so.
func (s Spec) RequestedBy() string {
	_, origin, _ := s.Input(nil) // who reads the input says what is wrong with it
	return origin.RequestedBy
}

// Input is the input of the workflow, with fields for those that the spec leaves out, and where the spec says that it comes from.
func (s Spec) Input(absent map[string]string) (json.RawMessage, Origin, error) {
	var (
		fields map[string]json.RawMessage
		origin Origin
	)
	text, err := s.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err == nil {
		err = json.Unmarshal(text, &origin)
	}
	if err != nil {
		return nil, origin, fmt.Errorf("spec: %w", err)
	}
	if len(origin.RequestedBy) > maxRequestedBy {
		return nil, origin, fmt.Errorf("spec.requestedBy: has %d bytes: at most %d are taken", len(origin.RequestedBy), maxRequestedBy)
	}
	delete(fields, "requestedBy")
	for name, value := range absent {
		if _, given := fields[name]; given {
			continue
		}
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, origin, err
		}
	}
	input, err := json.Marshal(fields)
	return input, origin, err
}
