package health

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestDecodeFillsDefaults(t *testing.T) {
	s := specOf(t, oneTemplate)
	if len(s.UnhealthyConditions) != 2 || s.UnhealthyConditions[0].Duration.Std() != 5*time.Minute || s.UnhealthyConditions[1].Status != "Unknown" {
		t.Errorf("conditions %+v", s.UnhealthyConditions)
	}
	if s.MinHealthy.String() != "51%" || !s.MaxUnhealthy.IsZero() {
		t.Errorf("minHealthy %s, maxUnhealthy %s", s.MinHealthy, s.MaxUnhealthy)
	}
	again, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	same, err := Decode(again)
	if err != nil || !sameJSON(s, same) {
		t.Errorf("%s is read as %+v, %v", again, same, err)
	}
}

func TestDecodeTheDocumentsExample(t *testing.T) {
	if _, err := Decode([]byte(`{"remediationTemplate":{"apiVersion":"self-node-remediation.medik8s.io/v1alpha1","kind":"SelfNodeRemediationTemplate","namespace":"snr","name":"self-node-remediation-resource-deletion-template"},
		"selector":{"matchExpressions":[{"key":"node-role.kubernetes.io/control-plane","operator":"DoesNotExist"},{"key":"node-role.kubernetes.io/master","operator":"DoesNotExist"}]},
		"minHealthy":"51%","unhealthyConditions":[{"type":"Ready","status":"False","duration":"300s"},{"type":"Ready","status":"Unknown","duration":"300s"}]}`)); err != nil {
		t.Error(err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, test := range map[string]struct{ fields, want string }{
		"no selector":           {`"selector":{},` + oneTemplate, "selector: required"},
		"bad selector":          {`"selector":{"matchExpressions":[{"key":"a","operator":"Is"}]},` + oneTemplate, "selector: "},
		"unknown field":         {workers + `,"minHealth":1,` + oneTemplate, "minHealth: unknown field"},
		"null":                  {workers + `,"minHealthy":null,` + oneTemplate, "minHealthy: null"},
		"both thresholds":       {workers + `,"minHealthy":1,"maxUnhealthy":1,` + oneTemplate, "minHealthy, maxUnhealthy: want one"},
		"150%":                  {workers + `,"minHealthy":"150%",` + oneTemplate, "minHealthy: 150%"},
		"negative":              {workers + `,"maxUnhealthy":-1,` + oneTemplate, "maxUnhealthy: "},
		"unlimited":             {workers + `,"maxUnhealthy":"unlimited",` + oneTemplate, "maxUnhealthy: "},
		"no remediation":        {workers, "remediationTemplate, maintenance, escalatingRemediations: want exactly one of them, got 0"},
		"empty escalation":      {workers + `,"escalatingRemediations":[]`, "want exactly one of them, got 0"},
		"both":                  {workers + `,"maintenance":{},` + oneTemplate, "got 2"},
		"short timeout":         {workers + "," + escalating("59s"), "escalatingRemediations[0].timeout: 59s is too short"},
		"order twice":           {workers + "," + strings.Replace(escalating("1m", "1m"), `"order":20`, `"order":10`, 1), "escalatingRemediations[1].order: 10 is there twice"},
		"step of nothing":       {workers + `,"escalatingRemediations":[{"order":1,"timeout":"1m"}]`, "escalatingRemediations[0]: want exactly one"},
		"no Template":           {workers + `,"remediationTemplate":{"apiVersion":"a/v1","kind":"Reboot","name":"b"}`, "remediationTemplate.kind: "},
		"deletes machines":      {workers + `,"maxUnhealthy":1,"remediationTemplate":{"apiVersion":"a/v1","kind":"machinedeletionremediationtemplate","name":"b"}`, "remediationTemplate.kind: "},
		"same condition":        {workers + `,"unhealthyConditions":[{"type":"A","status":"B","duration":"1s"},{"type":"A","status":"B","duration":"2s"}],` + oneTemplate, "unhealthyConditions[1]: "},
		"condition without":     {workers + `,"unhealthyConditions":[{"type":"A"}],` + oneTemplate, "unhealthyConditions[0].status: required\nunhealthyConditions[0].duration: required"},
		"duration of no string": {workers + `,"stormCooldownDuration":5,` + oneTemplate, "stormCooldownDuration: "},
		"bad delay":             {workers + `,"healthyDelay":"--1s",` + oneTemplate, "healthyDelay: "},
		"empty pause":           {workers + `,"pauseRequests":[" "],` + oneTemplate, "pauseRequests[0]: "},
		"groups without":        {workers + `,"groups":{"by":[]},` + oneTemplate, "groups.by: "},
		"flapping alone":        {workers + `,"flapping":{"within":"1h"},` + oneTemplate, "flapping: needs escalatingRemediations"},
		"maintenance's node":    {workers + `,"maintenance":{"input":{"node":"a"}}`, "maintenance.input.node: is the check's to say"},
		"maintenance's drain":   {workers + `,"maintenance":{"input":{"drain":{"mode":"x"}}}`, "maintenance.input.drain.mode: "},
		"etcd":                  {workers + `,"etcd":{"namespace":""},` + oneTemplate, "etcd.namespace: required"},
		"nothing":               {"", "selector: required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte("{" + test.fields + "}"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	for _, input := range []string{"", "[]", "null", "{"} {
		if _, err := Decode([]byte(input)); err == nil {
			t.Errorf("%q is taken", input)
		}
	}
}

func TestDecodeTellsAllAtOnce(t *testing.T) {
	_, err := Decode([]byte(`{"minHealthy":1,"maxUnhealthy":2,"escalatingRemediations":[{"order":1,"timeout":"1s"}]}`))
	if err == nil || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("got %v", err)
	}
}

func TestStepsAreInTheirOrder(t *testing.T) {
	s := specOf(t, strings.Replace(escalating("1m", "2m", "3m"), `"order":10`, `"order":99`, 1))
	got := ""
	for _, step := range s.Steps() {
		got += step.Template.Name + " "
	}
	if got != "step-2 step-3 step-1 " {
		t.Errorf("got %s", got)
	}
}

func TestRequired(t *testing.T) {
	for _, test := range []struct {
		field string
		nodes int
		want  int
	}{
		{`"minHealthy":"8"`, 10, 8}, {`"minHealthy":8`, 10, 8}, {`"minHealthy":"80%"`, 10, 8}, {`"minHealthy":"75%"`, 10, 8},
		{`"minHealthy":"0%"`, 10, 0}, {`"minHealthy":0`, 10, 0}, {`"minHealthy":"100%"`, 10, 10}, {`"minHealthy":12`, 10, 12},
		{`"maxUnhealthy":"8"`, 10, 2}, {`"maxUnhealthy":8`, 10, 2}, {`"maxUnhealthy":"80%"`, 10, 2}, {`"maxUnhealthy":"75%"`, 10, 2},
		{`"maxUnhealthy":"0%"`, 10, 10}, {`"maxUnhealthy":"100%"`, 10, 0}, {`"maxUnhealthy":"1%"`, 2, 1}, {`"maxUnhealthy":12`, 10, 0},
		{`"minHealthy":"51%"`, 7, 4}, {`"minHealthy":"51%"`, 0, 0},
	} {
		if got := specOf(t, oneTemplate, test.field).Required(test.nodes); got != test.want {
			t.Errorf("%s of %d: %d, want %d", test.field, test.nodes, got, test.want)
		}
	}
}

func TestLocked(t *testing.T) {
	s := specOf(t, oneTemplate)
	if err := s.Locked(specOf(t, oneTemplate, `"minHealthy":1`, `"pauseRequests":["a"]`, `"healthyDelay":"1s"`)); err != nil {
		t.Error(err)
	}
	other := specOf(t, escalating("1m"))
	other.Selector.MatchLabels = map[string]string{"role": "other"}
	err := s.Locked(other)
	for _, field := range []string{"selector", "remediationTemplate", "escalatingRemediations"} {
		if err == nil || !strings.Contains(err.Error(), field+": cannot change") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "workers-1": true, strings.Repeat("a", MaxName): true, strings.Repeat("a", MaxName+1): false, "": false, "A": false, "a.b": true, ".a": false, "a.": false, "-a": false, "a/b": false} {
		if got := CheckName(name) == nil; got != ok {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func TestGroupOf(t *testing.T) {
	if got := GroupOf(map[string]string{"zone": "a", "rack": "1"}, []string{"zone", "rack"}); got != "a/1" {
		t.Error(got)
	}
	if got := GroupOf(nil, []string{"zone"}); got == "" {
		t.Error("a node without the label is in the group of all nodes")
	}
}

func TestADurationOfNothingIsADuration(t *testing.T) {
	check := func(condition string) (Spec, error) {
		return Decode([]byte(`{"selector":{"matchLabels":{"pool":"blue"}},"maintenance":{"input":{}},"unhealthyConditions":[` + condition + `]}`))
	}
	if s, err := check(`{"type":"Ready","status":"False","duration":"0s"}`); err != nil || s.UnhealthyConditions[0].Duration != 0 {
		t.Errorf("%+v, %v", s.UnhealthyConditions, err)
	}
	if _, err := check(`{"type":"Ready","status":"False"}`); err == nil || !strings.Contains(err.Error(), "unhealthyConditions[0].duration: required") {
		t.Errorf("without one: %v", err)
	}
}

func TestWhenAControlPlaneMayBeRemediated(t *testing.T) {
	always := specOf(t, oneTemplate, `"etcd":{"namespace":"etcd"}`, `"controlPlane":{"allow":"always"}`)
	if ask := always.AskEtcd(); ask == nil || ask.Allow != AllowAlways {
		t.Errorf("%+v", ask)
	}
	for _, field := range []string{`"controlPlane":{"allow":"never"}`, `"etcd":{"namespace":"a","allow":"always"}`} {
		if _, err := Decode([]byte("{" + workers + "," + field + "," + oneTemplate + "}")); err == nil || !strings.Contains(err.Error(), "allow") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
