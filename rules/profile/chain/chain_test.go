package chain

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckChains(t *testing.T) {
	holding := map[string]bool{"yes": true, "also": true, "no": false, "with-dash": true, "a.b": true}
	for _, c := range []struct {
		text   string
		holds  bool
		spaced bool
		names  string
	}{
		{"yes", true, true, "yes"},
		{"no", false, true, "no"},
		{"!no", true, true, "no"},
		{"!!yes", true, true, "yes"},
		{"yes && no", false, true, "yes no"},
		{"yes&&also", true, false, "yes also"},
		{"(yes||no)", true, false, "yes no"},
		{"(yes || no)", true, true, "yes no"},
		{"yes && !(no || no)", true, true, "yes no"},
		{"no && no || yes", true, true, "no yes"},
		{"yes || yes && no", true, true, "yes no"},
		{"(yes || yes) && no", false, true, "yes no"},
		{"yes && yes && yes", true, true, "yes"},
		{"yes\n&& also\n", true, false, "yes also"},
		{"with-dash && a.b", true, true, "with-dash a.b"},
	} {
		parsed, err := ParseCheck(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := parsed.Holds(func(name string) bool { return holding[name] }); got != c.holds {
			t.Errorf("%s: %t", c.text, got)
		}
		if got := strings.Join(parsed.Names, " "); got != c.names || parsed.Spaced != c.spaced {
			t.Errorf("%s: names %s, spaced %t", c.text, got, parsed.Spaced)
		}
	}
}

func TestWhatKeepsAnExpressionFromHolding(t *testing.T) {
	for text, want := range map[string]string{
		"yes": "", "no": "no", "!yes": "!yes", "!no": "", "yes && no": "no", "no && none": "no none", "no || none": "no none",
		"yes && !(also || no)": "!also", "yes && (no || none) && also": "no none", "!(yes && also)": "!yes !also", "!(yes && no)": "",
		"no && !(yes && !no)": "no !yes", "!!no": "no", "(yes && no) || !also": "no !also", "no && no": "no",
	} {
		parsed, err := ParseCheck(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(parsed.Missing(func(name string) bool { return name == "yes" || name == "also" }), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestCheckChainsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", " ", "a &&", "&& a", "a b", "a & b", "a | b", "(a", "a)", "()", "!", "a && || b", "a ! b", strings.Repeat("(", 500) + "a" + strings.Repeat(")", 500),
		strings.Repeat("!", 500) + "a", strings.Repeat("a && ", 3000) + "a",
	} {
		if parsed, err := ParseCheck(text); err == nil {
			t.Errorf("%.40q is taken for %v", text, parsed)
		}
	}
}

func TestAnEmptyCheckChainHolds(t *testing.T) {
	if !(Check{}).Holds(func(string) bool { return false }) {
		t.Error("it does not")
	}
}

func TestLists(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " \n": nil, "a": {"a"}, "a && b": {"a", "b"}, "a&&b-c": {"a", "b-c"}, "a && a": {"a", "a"}, "\na &&\n b\n": {"a", "b"},
	} {
		if got, err := ParseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a &&", "&& a", "a || b", "!a", "(a)", "a b", "a & b", "a &&&& b"} {
		if got, err := ParseList(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestReadable(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "a_1": true, "_a": true, "1a": false, "a-b": false, "a.b": false, "": false} {
		if Readable(name) != want {
			t.Error(name)
		}
	}
}

// What is read is evaluated without a panic, whatever the names are.
func FuzzParseCheck(f *testing.F) {
	for _, seed := range []string{"a", "a && !(b || c)", "(((", "!!!a", "a&&b", "&"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseCheck(text)
		if err != nil {
			return
		}
		parsed.Holds(func(string) bool { return true })
		again, err := ParseCheck(parsed.String())
		if err != nil || !slices.Equal(again.Names, parsed.Names) {
			t.Errorf("%q is written as %q (%v)", text, parsed, err)
		}
	})
}
