package pika

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

// What a NotifyMaintenance is in Kubernetes.
const (
	Group    = "ngn2.nvidia.com"
	Kind     = "NotifyMaintenance"
	Resource = "notifymaintenances." + Group
)

// What PIKA and its clients read of an object beside its fields.
const (
	finalizer = Group + "/finalNotice"
	// idLabel is followed by the maintenance's ID.
	idLabel    = "maintenance/"
	terminated = "maintenance.ngn2.nvidia.com/terminated"

	readyAnnotation     = "maintenance/readyForMaintenance"
	workAnnotation      = "maintenance/maintenanceClient"
	validatesAnnotation = "maintenance/validationClient"
)

// New is an object without content.
func New() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(Group + "/v1alpha1")
	o.SetKind(Kind)
	return o
}

// specOf is what an object asks for.
type specOf struct {
	NodeObject      string `json:"nodeObject"`
	MaintenanceID   string `json:"maintenanceID"`
	MaintenanceType string `json:"maintenanceType"`
	Owner           string `json:"owner"`
	// AdditionalMessageChannels are told of it besides.
	AdditionalMessageChannels struct {
		AmazonSNSTopicARN string `json:"amazonSNSTopicARN"`
	} `json:"additionalMessageChannels"`
}

// statusOf is NotifyMaintenanceStatus.
type statusOf struct {
	MaintenanceStatus    notices.State      `json:"maintenanceStatus"`
	SLAExpires           *metav1.Time       `json:"slaExpires,omitempty"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
	TransitionTimestamps []transition       `json:"transitionTimestamps,omitempty"`
}

type transition struct {
	MaintenanceStatus   notices.State `json:"maintenanceStatus"`
	TransitionTimestamp metav1.Time   `json:"transitionTimestamp"`
}

// read reads the spec and the status of an object.
func read(o *unstructured.Unstructured) (s specOf, status statusOf, err error) {
	for field, to := range map[string]any{"spec": &s, "status": &status} {
		fields, _, wrong := unstructured.NestedMap(o.Object, field)
		if wrong == nil {
			wrong = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, to)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", field, wrong))
		}
	}
	return s, status, err
}

// order are the states of an object in the order in which it comes into them; it comes into none that is before its own.
var order = []notices.State{
	"", notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired, notices.ObjectsDrained, notices.Validating, notices.MaintenanceIncomplete,
}

// isBefore reports whether a state comes before another.
func isBefore(a, b notices.State) bool { return slices.Index(order, a) < slices.Index(order, b) }

// into has the status come into a state, unless it is in it or past it.
func (s *statusOf) into(state notices.State, at time.Time) (changed bool) {
	if !isBefore(s.MaintenanceStatus, state) {
		return false
	}
	s.MaintenanceStatus = state
	s.TransitionTimestamps = append(s.TransitionTimestamps, transition{state, *mirror.At(at)})
	return true
}

// mirrorAnnotations has a condition say what each annotation of a client says. Readiness that is denied says nothing, as in PIKA.
func (s *statusOf) mirrorAnnotations(annotations map[string]string, at time.Time) {
	for _, key := range []string{readyAnnotation, workAnnotation, validatesAnnotation} {
		value, given := annotations[key]
		kind := key[len(idLabel):]
		i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		switch {
		case !given || key == readyAnnotation && value != "true":
		case i < 0:
			s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(value), Reason: "Annotation", LastTransitionTime: *mirror.At(at)})
		default:
			s.Conditions[i].Status = metav1.ConditionStatus(value)
		}
	}
}

// Options say whether and how a bridge serves PIKA's objects.
type Options struct {
	// Namespace is that of PIKA, where its lease is. Empty serves none of its objects.
	Namespace string
	// SLA is PIKA's slaPeriod: the time in which a node is to be empty.
	SLA time.Duration
	// Input is a JSON merge patch for the input of each maintenance.
	Input string
	// Channels are the workers' channels for the topics of Amazon SNS that objects name, by the topic's ARN. They are told besides those that
	// Input names.
	Channels map[string]string
}

// Validate returns what is wrong with them.
func (o Options) Validate() error {
	switch {
	case o.Namespace == "" && o.SLA == 0 && o.Input == "" && len(o.Channels) == 0:
		return nil
	case o.Namespace == "":
		return errors.New("--pika-sla, --pika-input, --pika-channel: need --pika")
	case o.SLA <= 0:
		return errors.New("--pika-sla: required with --pika: the slaPeriod of PIKA's configuration, such as 24h")
	}
	for _, topic := range slices.Sorted(maps.Keys(o.Channels)) {
		if topic == "" {
			return errors.New("--pika-channel: want TOPIC=CHANNEL, and the topic is empty")
		}
		if err := spec.ChannelName(o.Channels[topic]); err != nil {
			return fmt.Errorf("--pika-channel: %s: %w", topic, err)
		}
	}
	object := New()
	object.SetName("any")
	object.SetUID("any")
	input, err := o.inputOf(object, specOf{NodeObject: "any", MaintenanceID: "any", MaintenanceType: spec.Planned}, statusOf{})
	if err != nil {
		return fmt.Errorf("--pika-input: %w", err)
	}
	if _, named := input["notify"].([]any); len(o.Channels) > 0 && !named { // with it the workers' defaults do not count any more
		return errors.New(`--pika-channel: say by --pika-input which channels are told besides: {"notify":["oncall"]}, or []`)
	}
	return nil
}

// inputOf is the maintenance that an object asks for: the node is cordoned, others drain it and say so, its clients work and validate, and say
// so. An object that PIKA had begun with goes before others, and the cordon that its scheduler had set is taken over.
func (o Options) inputOf(object *unstructured.Unstructured, asks specOf, status statusOf) (client.Input, error) {
	begun := isBefore(notices.MaintenanceScheduled, status.MaintenanceStatus)
	after := o.SLA
	if status.SLAExpires != nil {
		after = max(time.Until(status.SLAExpires.Time), time.Second).Round(time.Second)
	}
	given := client.Input{
		"node": asks.NodeObject, "requestor": asks.MaintenanceID, "type": asks.MaintenanceType, "owner": asks.Owner,
		"preflight": spec.PreflightOff, "readyTimeout": "0s", "drain": map[string]any{"mode": spec.ModeExternal, "escalation": []any{}},
		"sla": map[string]any{"after": after.String()}, "validation": map[string]any{"signal": true, "deadline": validates},
	}
	if begun {
		given["priority"] = begunFirst
	}
	input, err := mirror.Merged(given, json.RawMessage(o.Input))
	if err != nil {
		return nil, err
	}
	if channel := o.Channels[asks.AdditionalMessageChannels.AmazonSNSTopicARN]; channel != "" {
		named, _ := input["notify"].([]any)
		if !slices.Contains(named, any(channel)) {
			input["notify"] = append(named, channel)
		}
	}
	input["object"] = spec.Object{Resource: Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()), Cordoned: begun}
	decoded, err := input.Decode()
	if err != nil {
		return nil, err
	}
	return input, decoded.Reserved()
}

// validates is how long a validation may take: PIKA has no limit.
const validates = "8760h"

// begunFirst is the priority of what PIKA has begun with.
const begunFirst = 1000

// isHeld reports whether an object is PIKA's to end: without the finalizer it has ended.
func isHeld(o *unstructured.Unstructured) bool { return controllerutil.ContainsFinalizer(o, finalizer) }
