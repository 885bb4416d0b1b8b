package schedule

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]Amount{
		"0":         Count(0),
		"3":         Count(3),
		"15000":     Count(15000),
		"0%":        Percent(0),
		"20%":       Percent(20),
		"100%":      Percent(100),
		"unlimited": Unlimited(),
	} {
		got, err := ParseAmount(text)
		if err != nil || got != want {
			t.Errorf("ParseAmount(%q) = %v, %v, want %v", text, got, err, want)
		}
		if got.IsZero() {
			t.Errorf("ParseAmount(%q) counts as not set", text)
		}
		if got.String() != text {
			t.Errorf("ParseAmount(%q).String() = %q", text, got)
		}
	}
}

// badAmounts are what is refused, with the words that say why.
var badAmounts = map[string]string{
	"":                     "empty",
	" ":                    "not an amount",
	" 3":                   "not an amount",
	"3 ":                   "not an amount",
	"3 %":                  "not an amount",
	"%":                    "not an amount",
	"3%%":                  "not an amount",
	"+3":                   "not an amount",
	"0x10":                 "not an amount",
	"three":                "not an amount",
	"Unlimited":            "not an amount",
	"null":                 "not an amount",
	"NaN":                  "not an amount",
	"-":                    "not an amount",
	"-1":                   "negative",
	"-0":                   "negative",
	"-20%":                 "negative",
	"1.5":                  "not a whole number",
	"3.0":                  "not a whole number",
	"1e3":                  "not a whole number",
	"12.5%":                "not a whole number",
	"101%":                 "more than all nodes",
	"99999999999999999999": "out of range",
}

func TestParseAmountRefuses(t *testing.T) {
	for text, want := range badAmounts {
		got, err := ParseAmount(text)
		if err == nil {
			t.Errorf("ParseAmount(%q) = %v, want an error", text, got)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), accepted) {
			t.Errorf("ParseAmount(%q): %v, want %q and what is accepted", text, err, want)
		}
	}
}

func TestAmountJSON(t *testing.T) {
	for _, c := range []struct {
		in, out string
		want    Amount
	}{
		{`3`, `3`, Count(3)},
		{`"3"`, `3`, Count(3)},
		{`0`, `0`, Count(0)},
		{`"20%"`, `"20%"`, Percent(20)},
		{`"\u0032\u0030%"`, `"20%"`, Percent(20)},
		{`"unlimited"`, `"unlimited"`, Unlimited()},
	} {
		var got Amount
		if err := json.Unmarshal([]byte(c.in), &got); err != nil || got != c.want {
			t.Errorf("%s reads as %v, %v, want %v", c.in, got, err, c.want)
		}
		if out, err := json.Marshal(got); err != nil || string(out) != c.out {
			t.Errorf("%v writes as %s, %v, want %s", got, out, err, c.out)
		}
	}
}

func TestAmountJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`null`:    "null is refused",
		`true`:    "true is refused",
		`{}`:      "{} is refused",
		`[1]`:     "[1] is refused",
		`1.5`:     "not a whole number",
		`1e3`:     "not a whole number",
		`-1`:      "negative",
		`"-1"`:    "negative",
		`"101%"`:  "more than all nodes",
		`""`:      "empty",
		`"20 %"`:  "not an amount",
		`1e99999`: "not an amount",
	} {
		limits := Limits{MaxUnavailable: Count(7)}
		err := json.Unmarshal([]byte(`{"maxUnavailable":`+text+`}`), &limits)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "want a whole number") {
			t.Errorf("%s: %v, want %q and what is accepted", text, err, want)
		}
		if limits.MaxUnavailable != Count(7) {
			t.Errorf("%s changed the amount to %v", text, limits.MaxUnavailable)
		}
	}
}

func TestAmountYAML(t *testing.T) {
	var got Limits
	text := "maxParallel: 10%\nmaxUnavailable: 0\ngroups:\n- {name: gpu, nodeSelector: pool=gpu, maxParallel: '2'}\n"
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.MaxParallel != Percent(10) || got.MaxUnavailable != Count(0) || got.Groups[0].MaxParallel != Count(2) {
		t.Errorf("read %+v", got)
	}
	if err := yaml.UnmarshalStrict([]byte("maxUnavailable:\n"), &got); err == nil {
		t.Error("a limit without its value was read as no limit")
	}
}

func TestUnsetAmountIsOmitted(t *testing.T) {
	var zero Amount
	if !zero.IsZero() || zero.String() != "" || zero.Of(10) != math.MaxInt {
		t.Errorf("the zero amount is %q, %d of 10", zero, zero.Of(10))
	}
	if out, err := json.Marshal(zero); err != nil || string(out) != "null" {
		t.Errorf("the zero amount writes as %s, %v", out, err)
	}
	out, err := json.Marshal(Limits{Groups: []Group{{Name: "gpu", MaxUnavailable: Count(0)}}})
	if want := `{"groups":[{"name":"gpu","maxUnavailable":0}]}`; err != nil || string(out) != want {
		t.Errorf("limits write as %s, %v, want %s", out, err, want)
	}
}

func TestAmountOf(t *testing.T) {
	for _, c := range []struct {
		amount      Amount
		total, want int
	}{
		{Count(3), 10, 3},
		{Count(30), 10, 30},
		{Count(0), 10, 0},
		{Percent(20), 10, 2},
		{Percent(20), 11, 3},
		{Percent(1), 1, 1},
		{Percent(1), 100, 1},
		{Percent(1), 101, 2},
		{Percent(33), 100, 33},
		{Percent(0), 10, 0},
		{Percent(100), 10, 10},
		{Percent(50), 0, 0},
		{Percent(100), math.MaxInt, math.MaxInt},
		{Unlimited(), 0, math.MaxInt},
	} {
		if got := c.amount.Of(c.total); got != c.want {
			t.Errorf("%v of %d = %d, want %d", c.amount, c.total, got, c.want)
		}
	}
}

func FuzzParseAmount(f *testing.F) {
	for text := range badAmounts {
		f.Add(text)
	}
	for _, text := range []string{"0", "3", "007", "20%", "unlimited"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAmount(text)
		if err != nil {
			if a != (Amount{}) {
				t.Errorf("%q is refused and gives %v", text, a)
			}
			return
		}
		if a.IsZero() || a.validate() != nil {
			t.Errorf("%q gives the unusable %#v", text, a)
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Errorf("%q gives %v, which reads as %v, %v", text, a, again, err)
		}
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Amount
		if err := json.Unmarshal(data, &back); err != nil || back != a {
			t.Errorf("%s reads as %v, %v, want %v", data, back, err, a)
		}
		if n := a.Of(10); n < 0 {
			t.Errorf("%v of 10 = %d", a, n)
		}
	})
}
