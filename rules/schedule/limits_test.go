package schedule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gpu is a valid group to vary.
func gpu(change func(*Group)) Limits {
	g := Group{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: Count(2)}
	change(&g)
	return Limits{Groups: []Group{g}}
}

func TestValidateAccepts(t *testing.T) {
	for name, limits := range map[string]Limits{
		"nothing set":                  {},
		"numbers":                      {MaxParallel: Count(3), MaxUnavailable: Count(5)},
		"percentages":                  {MaxParallel: Percent(1), MaxUnavailable: Percent(100)},
		"unlimited parallel":           {MaxParallel: Unlimited()},
		"no further node unavailable":  {MaxUnavailable: Count(0)},
		"no percent unavailable":       {MaxUnavailable: Percent(0)},
		"a group by selector":          gpu(func(*Group) {}),
		"a set-based selector":         gpu(func(g *Group) { g.NodeSelector = "pool in (gpu,tpu),!spot" }),
		"a group by labels":            gpu(func(g *Group) { g.NodeSelector = ""; g.GroupBy = []string{"topology.kubernetes.io/zone", "rack"} }),
		"a group of both":              gpu(func(g *Group) { g.GroupBy = []string{"zone"} }),
		"a group with maxUnavailable":  gpu(func(g *Group) { g.MaxParallel = Amount{}; g.MaxUnavailable = Count(0) }),
		"a group of unlimited at once": gpu(func(g *Group) { g.MaxParallel = Unlimited() }),
	} {
		if err := limits.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		want   string
	}{
		{"no slot", Limits{MaxParallel: Count(0)}, "maxParallel: 0 is refused: elsewhere 0 means no limit"},
		{"no percent of slots", Limits{MaxParallel: Percent(0)}, "maxParallel: 0% is refused: elsewhere 0 means no limit"},
		{"negative", Limits{MaxParallel: Count(-1)}, "maxParallel: -1 is negative"},
		{"over 100%", Limits{MaxUnavailable: Percent(101)}, "maxUnavailable: 101% is more than all nodes"},
		{"unlimited unavailable", Limits{MaxUnavailable: Unlimited()}, "maxUnavailable: unlimited is refused: leave the field out"},
		{"group without name", gpu(func(g *Group) { g.Name = "" }), "groups[0].name: required"},
		{"group name in capitals", gpu(func(g *Group) { g.Name = "GPU" }), `groups[0].name: "GPU" is not a name`},
		{"group name with bracket", gpu(func(g *Group) { g.Name = "gpu[a" }), `groups[0].name: "gpu[a" is not a name`},
		{"long group name", gpu(func(g *Group) { g.Name = strings.Repeat("a", 64) }), "groups[0].name:"},
		{"bad selector", gpu(func(g *Group) { g.NodeSelector = "pool=(" }), `groups[0].nodeSelector: "pool=(" is not a label selector`},
		{"group of nothing", gpu(func(g *Group) { g.NodeSelector = "" }), "groups[0]: nodeSelector or groupBy is required"},
		{"group without limit", gpu(func(g *Group) { g.MaxParallel = Amount{} }), "groups[0]: maxParallel, maxUnavailable or windows is required"},
		{"group without slot", gpu(func(g *Group) { g.MaxParallel = Count(0) }), "groups[0].maxParallel: 0 is refused"},
		{"group unlimited unavailable", gpu(func(g *Group) { g.MaxUnavailable = Unlimited() }), "groups[0].maxUnavailable: unlimited is refused"},
		{"bad label key", gpu(func(g *Group) { g.GroupBy = []string{"zone", "a b"} }), `groups[0].groupBy[1]: "a b" is not a label key`},
		{"empty label key", gpu(func(g *Group) { g.GroupBy = []string{""} }), `groups[0].groupBy[0]: "" is not a label key`},
		{"label key twice", gpu(func(g *Group) { g.GroupBy = []string{"zone", "rack", "zone"} }), `groups[0].groupBy[2]: "zone" repeats groupBy[0]`},
		{"name twice", Limits{Groups: append(gpu(func(*Group) {}).Groups, gpu(func(*Group) {}).Groups...)}, `groups[1].name: "gpu" is the name of groups[0] already`},
	} {
		err := c.limits.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one error: %v", c.name, err)
		}
	}
}

func TestValidateJoinsAll(t *testing.T) {
	err := Limits{
		MaxParallel:    Count(0),
		MaxUnavailable: Unlimited(),
		Groups:         []Group{{}, {Name: "zone", NodeSelector: "a=(", MaxUnavailable: Count(1)}},
	}.Validate()
	var fields []string
	for line := range strings.Lines(err.Error()) {
		field, _, _ := strings.Cut(line, ": ")
		fields = append(fields, field)
	}
	want := []string{"maxParallel", "maxUnavailable", "groups[0].name", "groups[0]", "groups[0]", "groups[1].nodeSelector"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields named (-want +got):\n%s\n%v", diff, err)
	}
}

func TestWithDefaults(t *testing.T) {
	if got := (Limits{}).WithDefaults(); !cmp.Equal(got, Limits{MaxParallel: Count(1), Remediations: Percent(10)}) {
		t.Errorf("defaults are %+v", got)
	}
	set := Limits{MaxParallel: Unlimited(), MaxUnavailable: Count(0), Remediations: Count(0)}
	if got := set.WithDefaults(); !cmp.Equal(got, set) {
		t.Errorf("%+v became %+v", set, got)
	}
}

func TestGroupOfKey(t *testing.T) {
	limits := Limits{Groups: []Group{{Name: "gpu"}, {Name: "zone", GroupBy: []string{"zone"}}}}
	for key, want := range map[string]string{"gpu": "gpu", "zone[zone=gpu]": "zone", "zone[zone=<none>]": "zone", "rack[zone=a]": ""} {
		if got, ok := limits.Group(key); got.Name != want || ok != (want != "") {
			t.Errorf("group of %s is %q, %v, want %q", key, got.Name, ok, want)
		}
	}
}

func FuzzLimitsJSON(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"maxParallel":3,"maxUnavailable":"20%"}`,
		`{"maxParallel":"unlimited","maxUnavailable":0}`,
		`{"maxParallel":null}`,
		`{"maxUnavailable":1.5}`,
		`{"groups":[{"name":"gpu","nodeSelector":"pool=gpu","maxParallel":2}]}`,
		`{"groups":[{"name":"zone","groupBy":["topology.kubernetes.io/zone"],"maxUnavailable":"1%"}]}`,
		`{"groups":[{"name":"gpu","nodeSelector":"a in ("}]}`,
		`{"groups":[null]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var limits Limits
		if json.Unmarshal([]byte(text), &limits) != nil {
			return
		}
		valid := limits.Validate() == nil
		data, err := json.Marshal(limits)
		if err != nil {
			t.Fatal(err)
		}
		var back Limits
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("%s does not read back: %v", data, err)
		}
		if (back.Validate() == nil) != valid {
			t.Errorf("%s is valid: %v, read back: %v", text, valid, !valid)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(data) {
			t.Errorf("%s became %s, %v", data, again, err)
		}
		if !valid {
			return
		}
		grouper, err := NewGrouper(limits.Groups)
		if err != nil {
			t.Fatalf("valid groups do not compile: %v", err)
		}
		for _, key := range grouper.Keys(map[string]string{"pool": "gpu"}) {
			if _, ok := limits.Group(key); !ok {
				t.Errorf("key %q is of no group", key)
			}
		}
	})
}
