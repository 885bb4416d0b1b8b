package pika

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

func TestAnObjectIsInNoEarlierStateThanBefore(t *testing.T) {
	var s statusOf
	at := time.Unix(1, 0)
	for _, c := range []struct {
		state   notices.State
		changed bool
	}{
		{notices.MaintenanceScheduled, true}, {notices.MaintenanceScheduled, false}, {notices.ObjectsDrained, true},
		{notices.SLAExpired, false}, {notices.MaintenanceEnded, false}, {notices.Escalated, false}, {notices.MaintenanceIncomplete, true}, {notices.Validating, false},
	} {
		if got := s.into(c.state, at); got != c.changed {
			t.Errorf("into %s: %v", c.state, got)
		}
	}
	if len(s.TransitionTimestamps) != 3 || s.MaintenanceStatus != notices.MaintenanceIncomplete {
		t.Errorf("%+v", s)
	}
}

func TestConditionsSayWhatAnnotationsSay(t *testing.T) {
	var s statusOf
	s.mirrorAnnotations(map[string]string{readyAnnotation: "false", workAnnotation: "inprogress", "other": "x"}, time.Unix(1, 0))
	s.mirrorAnnotations(map[string]string{readyAnnotation: "true", workAnnotation: "complete"}, time.Unix(2, 0))
	want := []metav1.Condition{
		{Type: "maintenanceClient", Status: "complete", Reason: "Annotation", LastTransitionTime: metav1.Unix(1, 0)}, // as there, it is the time of the first
		{Type: "readyForMaintenance", Status: "true", Reason: "Annotation", LastTransitionTime: metav1.Unix(2, 0)},
	}
	same := func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.LastTransitionTime.Equal(&b.LastTransitionTime)
	}
	if !slices.EqualFunc(s.Conditions, want, same) {
		t.Errorf("%+v", s.Conditions)
	}
}

func TestTheInputOfAnObject(t *testing.T) {
	o := New()
	o.SetName("kernel")
	o.SetNamespace("gpu")
	o.SetUID("uid-1")
	asks := specOf{NodeObject: "worker-01", MaintenanceID: "id-1", MaintenanceType: "unplanned", Owner: "amy"}
	asks.AdditionalMessageChannels.AmazonSNSTopicARN = "arn:gpu"
	for name, c := range map[string]struct {
		options Options
		status  statusOf
		is      func(spec.Maintenance) bool
	}{
		"as PIKA has it": {Options{SLA: time.Hour}, statusOf{}, func(m spec.Maintenance) bool {
			return m.Requestor == "id-1" && m.Type == spec.Unplanned && m.Owner == "amy" && m.Drain.Mode == spec.ModeExternal && m.Validation.Signal &&
				time.Duration(m.SLA.After) == time.Hour && m.Object.Namespace == "gpu" && !m.Object.Cordoned && m.Priority == 0 && m.Notify == nil
		}},
		"drained by Drydock": {Options{SLA: time.Hour, Input: `{"drain":{"mode":"evict"},"validation":null}`}, statusOf{}, func(m spec.Maintenance) bool {
			return m.Drain.Mode == spec.ModeEvict && m.Validation == nil
		}},
		"begun by PIKA": {Options{SLA: time.Hour}, statusOf{MaintenanceStatus: notices.MaintenanceStarted, SLAExpires: &metav1.Time{Time: time.Now().Add(time.Minute)}}, func(m spec.Maintenance) bool {
			return m.Object.Cordoned && m.Priority == begunFirst && time.Duration(m.SLA.After) <= time.Minute
		}},
		"told of by a topic": {Options{SLA: time.Hour, Input: `{"notify":["all"]}`, Channels: map[string]string{"arn:gpu": "gpu"}}, statusOf{}, func(m spec.Maintenance) bool {
			return slices.Equal(*m.Notify, []string{"all", "gpu"})
		}},
		"late": {Options{SLA: time.Hour}, statusOf{MaintenanceStatus: notices.SLAExpired, SLAExpires: &metav1.Time{Time: time.Now().Add(-time.Hour)}}, func(m spec.Maintenance) bool {
			return time.Duration(m.SLA.After) == time.Second
		}},
	} {
		input, err := c.options.inputOf(o, asks, c.status)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m, err := input.Decode(); err != nil || !c.is(m) {
			t.Errorf("%s: %v: %+v", name, err, m)
		}
	}
	if _, err := (Options{SLA: time.Hour}).inputOf(o, specOf{NodeObject: "worker-01", MaintenanceID: "-", MaintenanceType: "planned"}, statusOf{}); err == nil {
		t.Error("an ID is taken that is no requestor")
	}
}

func TestOptions(t *testing.T) {
	for says, o := range map[string]Options{
		"": {Namespace: "pika", SLA: time.Hour}, "need --pika": {SLA: time.Hour}, "--pika-sla: required": {Namespace: "pika"},
		"--pika-channel: arn:gpu": {Namespace: "pika", SLA: time.Hour, Channels: map[string]string{"arn:gpu": "GPU"}},
		"the topic is empty":      {Namespace: "pika", SLA: time.Hour, Channels: map[string]string{"": "gpu"}},
		"are told besides":        {Namespace: "pika", SLA: time.Hour, Channels: map[string]string{"arn:gpu": "gpu"}},
		"--pika-input":            {Namespace: "pika", SLA: time.Hour, Input: `{"drain":{"mode":"perhaps"}}`},
	} {
		if err := o.Validate(); (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}
