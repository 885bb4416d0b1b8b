package validation_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ready(status string, since time.Time) validation.Facts {
	return validation.Facts{Node: validation.Node{Conditions: []validation.NodeCondition{
		{Type: "MemoryPressure", Status: "False"}, {Type: "Ready", Status: status, Since: since, Message: "kubelet says so"},
	}}}
}

func offers(amounts ...validation.Amount) validation.Facts {
	return validation.Facts{Node: validation.Node{Allocatable: amounts}}
}

func boots(before, now string) validation.Facts {
	return validation.Facts{BootIDBefore: before, Node: validation.Node{BootID: now}}
}

func TestDecide(t *testing.T) {
	isReady := validation.Validation{Conditions: []validation.Condition{{Type: "Ready", ForAtLeast: period.Duration(time.Minute)}}}
	gpus := func(r validation.Resource) validation.Validation {
		return validation.Validation{Allocatable: []validation.Resource{r}}
	}
	restarted := validation.Validation{NewBootID: true}
	all := validation.Validation{DaemonSets: validation.AllDaemonSets}
	smoke := validation.Validation{Checks: []string{"smoke"}}
	signal := validation.Validation{Signal: true}
	lacking := func(n int) validation.Facts {
		f := validation.Facts{DaemonSets: validation.DaemonSets{Selected: 9, Wanted: 7}}
		for _, name := range []string{"z/proxy", "b/logs", "a/cni", "c/csi"}[:n] {
			f.DaemonSets.Lacking = append(f.DaemonSets.Lacking, validation.Lacking{DaemonSet: name, Why: "has no pod"})
		}
		return f
	}
	for name, c := range map[string]struct {
		v     validation.Validation
		facts validation.Facts
		ok    bool
		want  string
	}{
		"condition holds":          {isReady, ready("True", noon.Add(-time.Minute)), true, "is True"},
		"condition is young":       {isReady, ready("True", noon.Add(-20*time.Second)), false, "40s to go"},
		"condition has not status": {isReady, ready("False", noon.Add(-time.Hour)), false, "is False, want True: kubelet says so"},
		"condition is missing":     {isReady, validation.Facts{}, false, "does not report this condition"},
		"condition from a clock that is ahead": {
			validation.Validation{Conditions: []validation.Condition{{Type: "Ready"}}}, ready("True", noon.Add(time.Minute)), true, "is True"},
		"condition must be False": {
			validation.Validation{Conditions: []validation.Condition{{Type: "MemoryPressure", Status: "False"}}}, ready("True", noon), true, "is False"},

		"restarted":         {restarted, boots("a", "b"), true, "was restarted"},
		"not restarted":     {restarted, boots("a", "a"), false, "restart it"},
		"boot ID not known": {restarted, boots("", "b"), false, "is not known"},
		"no boot ID":        {restarted, boots("a", ""), false, "kubelet has to register"},

		"enough":      {gpus(validation.Resource{Name: "nvidia.com/gpu", AtLeast: "8"}), offers(validation.Amount{Resource: "nvidia.com/gpu", Quantity: "8"}), true, "at least 8"},
		"too few":     {gpus(validation.Resource{Name: "nvidia.com/gpu", AtLeast: "8"}), offers(validation.Amount{Resource: "nvidia.com/gpu", Quantity: "7"}), false, "offers nvidia.com/gpu 7, want at least 8"},
		"none":        {gpus(validation.Resource{Name: "nvidia.com/gpu", AtLeast: "8"}), offers(validation.Amount{Resource: "cpu", Quantity: "8"}), false, "device plugin has to register"},
		"other units": {gpus(validation.Resource{Name: "memory", AtLeast: "1Gi"}), offers(validation.Amount{Resource: "memory", Quantity: "1048577Ki"}), true, "at least 1Gi"},
		"one of those that match is short": {
			gpus(validation.Resource{NameRegex: `nvidia\.com/mig-.*`, AtLeast: "2"}),
			offers(validation.Amount{Resource: "nvidia.com/mig-1g", Quantity: "2"}, validation.Amount{Resource: "nvidia.com/mig-2g", Quantity: "0"}, validation.Amount{Resource: "xnvidia.com/mig-2g", Quantity: "0"}), false, "offers nvidia.com/mig-2g 0, want"},
		"all that match have it": {
			gpus(validation.Resource{NameRegex: `nvidia\.com/mig-.*`, AtLeast: "2"}), offers(validation.Amount{Resource: "nvidia.com/mig-1g", Quantity: "2"}), true, "at least 2"},
		"a regular expression matches whole names": {
			gpus(validation.Resource{NameRegex: `gpu|cpu`, AtLeast: "2"}), offers(validation.Amount{Resource: "nvidia.com/gpu", Quantity: "2"}, validation.Amount{Resource: "cpus", Quantity: "2"}), false, "offers none"},

		"DaemonSets are ready":   {all, lacking(0), true, "all 7 have a Ready pod"},
		"DaemonSets lack":        {all, lacking(2), false, "2 of 7 without a Ready pod on the node: b/logs has no pod; z/proxy has no pod"},
		"many DaemonSets lack":   {all, lacking(4), false, "a/cni has no pod; b/logs has no pod; c/csi has no pod; and 1 more"},
		"no DaemonSets at all":   {all, validation.Facts{}, true, "all 0"},
		"no DaemonSet selected":  {validation.Validation{DaemonSets: "app=cni"}, validation.Facts{}, false, "no DaemonSet has labels"},
		"check has not answered": {smoke, validation.Facts{Checks: []validation.Answer{{Check: "smoked", OK: true}}}, false, "not answered"},
		"check is well":          {smoke, validation.Facts{Checks: []validation.Answer{{Check: "smoke", OK: true, Message: "200"}}}, true, "200"},
		"check is not well":      {smoke, validation.Facts{Checks: []validation.Answer{{Check: "smoke", Message: "503"}}}, false, "503"},
		"no signal":              {signal, validation.Facts{}, false, "nobody has validated"},
		"validated":              {signal, validation.Facts{Signal: &validation.Signal{Validated: true, By: "eve"}}, true, "validated by eve"},
		"declared failed": {signal, validation.Facts{Signal: &validation.Signal{By: "eve", Comment: "fan broken"}}, false,
			"declared failed by eve: fan broken"},
		"signal that is not asked for": {smoke, validation.Facts{Signal: &validation.Signal{},
			Checks: []validation.Answer{{Check: "smoke", OK: true, Message: "200"}}}, true, "200"},
		"long message": {smoke, validation.Facts{Checks: []validation.Answer{{Check: "smoke", Message: strings.Repeat("é", 5000)}}}, false, "é…"},
	} {
		t.Run(name, func(t *testing.T) {
			c.v.Ready = new(false)
			r := validation.Decide(c.v, c.facts, noon)
			if len(r.Results) != 1 {
				t.Fatalf("%d results: %+v", len(r.Results), r)
			}
			got := r.Results[0]
			if got.OK != c.ok || r.AllGood != c.ok || !strings.Contains(got.Message, c.want) || len(got.Message) > 700 {
				t.Fatalf("got %+v, want OK %v and %q", got, c.ok, c.want)
			}
			if wants := name == "declared failed"; (r.Refused != "") != wants {
				t.Fatalf("refused %q", r.Refused)
			}
			if (r.Summary(3) == "") != c.ok {
				t.Fatalf("summary %q", r.Summary(3))
			}
		})
	}
}

func TestSummaryCountsTheRest(t *testing.T) {
	r := validation.Decide(validation.Validation{Ready: new(false), NewBootID: true, Signal: true, Checks: []string{"a", "b"}}, validation.Facts{}, noon)
	if got := r.Summary(1); !strings.HasPrefix(got, "newBootID: ") || !strings.HasSuffix(got, "; and 3 more") {
		t.Fatal(got)
	}
}
