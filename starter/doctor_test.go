package starter

import (
	"io"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

func TestDoctorExitCode(t *testing.T) {
	o := &doctorOptions{app: invocation.New(invocation.Process{Stdout: io.Discard}), output: terminal.Output{Format: terminal.FormatJSON}}
	c := &invocation.Connection{Clock: func() time.Time { return startertest.Noon }}
	if code := exit.CodeOf(o.show(c, doctor.Report{})); code != exit.OK {
		t.Errorf("healthy: %d", code)
	}
	if code := exit.CodeOf(o.show(c, startertest.SickReport())); code != exit.Failed {
		t.Errorf("with findings: %d", code)
	}
	err := o.show(c, doctor.Report{Nodes: []string{"wroker-01"}, Missing: []doctor.Missing{{Node: "wroker-01", Suggestion: "worker-01"}}})
	if exit.CodeOf(err) != exit.Failed || !strings.Contains(err.Error(), `"wroker-01" does not exist`) || !strings.Contains(err.Error(), "worker-01?") {
		t.Errorf("no such node: %v", err)
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
		o.app, o.output = invocation.New(invocation.Process{Stdin: strings.NewReader("")}), terminal.Output{Format: terminal.FormatTable}
		if code := exit.CodeOf(o.check(nil)); code != exit.Usage {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	o := doctorOptions{app: invocation.New(invocation.Process{}), output: terminal.Output{Format: terminal.FormatTable}, pause: 1, timeout: 1}
	if code := exit.CodeOf(o.check([]string{"no/node"})); code != exit.Usage {
		t.Errorf("a wrong name: exit code %d", code)
	}
	if err := o.check([]string{"worker-01"}); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]int{"5b1b3f5a-6c1c-4d7e-9f38-0d4f7f1f2a10": exit.OK, "a; kubectl": exit.Usage, "": exit.Usage} {
		o.lost = []string{text}
		if code := exit.CodeOf(o.check(nil)); code != want {
			t.Errorf("--lost %q: exit code %d", text, code)
		}
	}
}
