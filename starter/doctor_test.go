package starter

import (
	"io"
	"strings"
	"testing"
	"time"

	"drydock/rules/doctor"
)

func sickReport() doctor.Report {
	return doctor.Report{
		Looked: doctor.Looked{Nodes: 20, Marked: 2, Maintenances: 1, Holders: 2, Pending: 7},
		Findings: []doctor.Finding{
			{
				Kind: doctor.MarkDead, Node: "worker-01", WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1", Since: ago(3 * time.Hour),
				Text: "the node is held by a maintenance by ops that does not run (Terminated)", Fix: doctor.ReleaseMark,
			},
			{Kind: doctor.CordonUnowned, Node: "worker-02", Text: "it is cordoned and shows label drydock.dev/phase=Ready", NextStep: "kubectl uncordon worker-02"},
			{
				Kind: doctor.SlotUnknown, Node: "worker-03", WorkflowID: "node-maintenance/worker-03/ops", RunID: "run-3",
				Text: "the maintenance has a slot", Tried: "asked the scheduler for the slot in its name", NextStep: "it is counted as soon as the limits allow it",
			},
		},
		More:  2,
		Notes: []doctor.Finding{{Kind: doctor.CordonByHand, Node: "worker-09", Text: "somebody cordoned it"}, {Kind: doctor.NotChecked, Text: "no\npermission"}},
	}
}

func TestDoctorTables(t *testing.T) {
	golden(t, "doctor", func(w io.Writer) { renderDoctor(w, sickReport(), false, noon) })
	golden(t, "doctor_all", func(w io.Writer) { renderDoctor(w, sickReport(), true, noon) })
	golden(t, "doctor_fine", func(w io.Writer) {
		renderDoctor(w, doctor.Report{Looked: doctor.Looked{Nodes: 1}}, true, noon)
	})
	golden(t, "doctor_healed", func(w io.Writer) {
		f := sickReport().Findings[0]
		f.Tried = "released the mark and uncordoned the node"
		renderDoctor(w, doctor.Report{Fix: true, Healed: []doctor.Healed{{Finding: f}}, MoreHealed: 1}, false, noon)
	})
}

func TestDoctorExitCode(t *testing.T) {
	o := &doctorOptions{app: newApp(Process{Stdout: io.Discard}), output: output{format: formatJSON}}
	c := &connection{now: func() time.Time { return noon }}
	if code := codeOf(o.show(c, doctor.Report{})); code != exitOK {
		t.Errorf("healthy: %d", code)
	}
	if code := codeOf(o.show(c, sickReport())); code != exitFailed {
		t.Errorf("with findings: %d", code)
	}
}

func TestDoctorRefusesWhatMakesNoSense(t *testing.T) {
	for name, o := range map[string]doctorOptions{
		"comment without fix": {comment: "x", pause: 1, timeout: 1},
		"yes without fix":     {yes: true, pause: 1, timeout: 1},
		"no pause":            {timeout: 1},
		"no timeout":          {pause: 1},
		"nobody to ask":       {fix: true, pause: 1, timeout: 1},
	} {
		o.app, o.output = newApp(Process{Stdin: strings.NewReader("")}), output{format: formatTable}
		if code := codeOf(o.check(nil)); code != exitUsage {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	o := doctorOptions{app: newApp(Process{}), output: output{format: formatTable}, pause: 1, timeout: 1}
	if code := codeOf(o.check([]string{"no/node"})); code != exitUsage {
		t.Errorf("a wrong name: exit code %d", code)
	}
	if err := o.check([]string{"worker-01"}); err != nil {
		t.Error(err)
	}
}
