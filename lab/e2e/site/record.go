package site

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	"drydock.dev/drydock/api"
)

// recordTo is the folder to which the histories of the tests' workflows are written, so that later builds can be shown
// to go on with them (make record). Empty: nothing is recorded.
var recordTo = os.Getenv("DRYDOCK_RECORD")

// mostEvents bounds a recorded history, well above the length at which workflows go on in a new run.
const mostEvents = 12000

// record writes the histories of a test that has passed, each shape of a history once.
func (s *Site) record() {
	if recordTo == "" || s.Failed() {
		return
	}
	page, err := s.Temporal.ListWorkflow(s.Ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TaskQueue = '%s'", api.TaskQueue(s.Cluster, "drydock")),
	})
	if err != nil {
		s.Error(err)
		return
	}
	for _, info := range page.Executions {
		history := &historypb.History{}
		events := s.Temporal.GetWorkflowHistory(s.Ctx, info.Execution.WorkflowId, info.Execution.RunId, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				s.Error(err)
				return
			}
			history.Events = append(history.Events, event)
		}
		if len(history.Events) > mostEvents {
			continue
		}
		number, isNew := numberOf(shapeOf(history))
		if !isNew {
			continue
		}
		name := fmt.Sprintf("%s.%s.%d.json.gz", info.Type.Name, strings.ReplaceAll(s.Name(), "/", "."), number)
		if err := writeHistory(filepath.Join(recordTo, name), history); err != nil {
			s.Error(err)
		}
	}
}

// numberOf numbers shapes as they are seen, and reports whether this one is seen for the first time.
func numberOf(shape string) (number int, isNew bool) {
	Shared.shapes.Lock()
	defer Shared.shapes.Unlock()
	isNew = !Shared.shapes.seen[shape]
	Shared.shapes.seen[shape] = true
	return len(Shared.shapes.seen), isNew
}

// shapeOf is what makes a history another one to a replay: the kinds of its events and what they are about.
func shapeOf(h *historypb.History) string {
	var shape strings.Builder
	for _, e := range h.Events {
		fmt.Fprintf(&shape, "%s %s%s%s\n", e.EventType, e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(),
			e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName(),
			e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName())
	}
	return shape.String()
}

// writeHistory writes a history as the Temporal command line does, without the names of processes and machines.
func writeHistory(path string, h *historypb.History) error {
	withoutIdentities(h.ProtoReflect())
	data, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return file.Close()
}

// identities are those in what activities and workflows return.
var identities = regexp.MustCompile(`"identity":"(\\.|[^"\\])*"`)

// withoutIdentities empties every field "identity" of a message, also in its payloads.
func withoutIdentities(m protoreflect.Message) {
	if payload, ok := m.Interface().(*commonpb.Payload); ok {
		payload.Data = identities.ReplaceAll(payload.Data, []byte(`"identity":"somebody"`))
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Name() == "identity" && field.Kind() == protoreflect.StringKind:
			m.Clear(field)
		case field.IsMap() && field.MapValue().Kind() == protoreflect.MessageKind:
			value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				withoutIdentities(v.Message())
				return true
			})
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			for i := range value.List().Len() {
				withoutIdentities(value.List().Get(i).Message())
			}
		case !field.IsList() && !field.IsMap() && field.Kind() == protoreflect.MessageKind:
			withoutIdentities(value.Message())
		}
		return true
	})
}
