package validation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

// filled is a validation with its defaults.
func filled(t *testing.T, change func(v *validation.Validation)) validation.Validation {
	t.Helper()
	var v validation.Validation
	if err := json.Unmarshal([]byte(validation.Defaults), &v); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&v)
	}
	return v
}

func TestDefaultsAreValidAndEmpty(t *testing.T) {
	v := filled(t, nil)
	if err := v.Validate(); err != nil || !v.Empty() {
		t.Fatalf("empty %v, %v", v.Empty(), err)
	}
	want := validation.Validation{Deadline: period.Duration(30 * time.Minute), Every: period.Duration(10 * time.Second)}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Fatal(diff)
	}
	if r := validation.Decide(v, validation.Facts{}, time.Now()); !r.AllGood || len(r.Results) != 0 {
		t.Fatalf("an empty validation does not hold: %+v", r)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *validation.Validation)
		want   string
	}{
		"condition without type": {func(v *validation.Validation) { v.Conditions = []validation.Condition{{}} }, "conditions[0].type: "},
		"unknown status": {func(v *validation.Validation) {
			v.Conditions = []validation.Condition{{Type: "Ready"}, {Type: "GPUHealthy", Status: "true"}}
		}, `conditions[1].status: "true" is not one of True, False, Unknown`},
		"bad selector": {func(v *validation.Validation) { v.DaemonSets = "a in b" }, `daemonSets: "a in b" is neither "all" nor a label selector`},
		"name and regex": {func(v *validation.Validation) {
			v.Allocatable = []validation.Resource{{Name: "cpu", NameRegex: "cpu", AtLeast: "1"}}
		}, "allocatable[0]: want exactly one of name and nameRegex"},
		"bad regex": {func(v *validation.Validation) {
			v.Allocatable = []validation.Resource{{NameRegex: "(", AtLeast: "1"}}
		}, "allocatable[0].nameRegex: "},
		"bad name": {func(v *validation.Validation) {
			v.Allocatable = []validation.Resource{{Name: "nvidia.com/gpu/0", AtLeast: "1"}}
		}, `allocatable[0].name: "nvidia.com/gpu/0" is not the name of a resource`},
		"no amount": {func(v *validation.Validation) {
			v.Allocatable = []validation.Resource{{Name: "cpu"}}
		}, `allocatable[0].atLeast: "" is not a quantity`},
		"zero amount": {func(v *validation.Validation) {
			v.Allocatable = []validation.Resource{{Name: "cpu", AtLeast: "0"}}
		}, `allocatable[0].atLeast: "0" asks for nothing`},
		"check is a URL":  {func(v *validation.Validation) { v.Checks = []string{"http://evil"} }, `checks[0]: "http://evil" is not a name`},
		"check twice":     {func(v *validation.Validation) { v.Checks = []string{"a", "a"} }, `checks[1]: "a" is named twice`},
		"too many checks": {func(v *validation.Validation) { v.Checks = make([]string, 65) }, "checks: has 65 entries: at most 64"},
		"no pause":        {func(v *validation.Validation) { v.Every = 0 }, "every: must be more than 0s"},
		"no deadline":     {func(v *validation.Validation) { v.Deadline = 0 }, "deadline: must be more than 0s"},
		"soak of nothing": {func(v *validation.Validation) { v.Soak = 1 }, "soak: there is nothing"},
		"soak too long": {func(v *validation.Validation) {
			v.Signal, v.Soak = true, v.Deadline
		}, "soak: 30m0s must be shorter than the deadline (30m0s)"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := filled(t, c.change).Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEveryFieldMakesAValidationNotEmpty(t *testing.T) {
	for name, v := range map[string]validation.Validation{
		"ready":       {Ready: new(true)},
		"conditions":  {Conditions: []validation.Condition{{Type: "Ready"}}},
		"newBootID":   {NewBootID: true},
		"daemonSets":  {DaemonSets: validation.AllDaemonSets},
		"allocatable": {Allocatable: []validation.Resource{{Name: "cpu", AtLeast: "1"}}},
		"checks":      {Checks: []string{"smoke"}},
		"signal":      {Signal: true},
	} {
		v.Deadline, v.Every = period.Duration(time.Hour), period.Duration(time.Second)
		if v.Empty() {
			t.Errorf("%s: empty", name)
		}
		if err := v.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if validation.Decide(v, validation.Facts{Node: validation.Node{Name: "n", Missing: true}}, time.Now()).AllGood {
			t.Errorf("%s: holds on a node that does not exist", name)
		}
	}
}

func TestHooks(t *testing.T) {
	h := validation.Hooks{BeforeCordon: []string{"silence", "cmdb"}, BeforeRelease: []string{"cmdb", "approve"}}
	if err := h.Validate(); err != nil || h.Empty() {
		t.Fatalf("empty %v, %v", h.Empty(), err)
	}
	if got, want := h.Names(), []string{"approve", "cmdb", "silence"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if !(validation.Hooks{}).Empty() {
		t.Fatal("no hooks are not empty")
	}
	h.AfterDrain = []string{"ok", "Not_OK", "ok"}
	err := h.Validate()
	for _, want := range []string{`afterDrain[1]: "Not_OK" is not a name`, `afterDrain[2]: "ok" is named twice`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
