package bounds_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/bounds"
)

func sizeOf(t interface{ Fatal(...any) }, value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

func TestACutTextTakesNoMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(0, 200).Draw(t, "times")) +
			string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		most := rapid.IntRange(10, 2000).Draw(t, "most")
		cut := bounds.Cut(text, most)
		if size := sizeOf(t, cut) - len(`""`); size > most && cut != text || size > max(most, 6*len(text)) {
			t.Fatalf("%d bytes of %d", size, most)
		}
		if cut != text && !strings.HasPrefix(text, strings.TrimSuffix(cut, "…")) {
			t.Fatalf("%q is not the beginning of %q", cut, text)
		}
		if sizeOf(t, text)-len(`""`) <= most && cut != text {
			t.Fatalf("%q fits into %d, and became %q", text, most, cut)
		}
	})
}

func TestWordsEndsAtAWord(t *testing.T) {
	const gang = "a slot: gang os of 9 nodes goes once limits are raised: drydock limits set --max-parallel 9; drydock limits set --held ops=9 (maxParallel 2, the quota of ops (5))"
	for name, c := range map[string]struct {
		text string
		most int
		want string
	}{
		"it fits":                    {gang, len(gang), gang},
		"in a word":                  {"one two three", 11, "one two …"},
		"behind a word":              {"one two three four", 14, "one two …"},
		"at the end of a word":       {"one two three", 12, "one two …"},
		"in the first word":          {"abcdefghij", 8, "abcd …"},
		"in a command":               {gang, 80, "a slot: gang os of 9 nodes goes once limits are raised …"},
		"behind a command":           {gang, 100, "a slot: gang os of 9 nodes goes once limits are raised: drydock limits set --max-parallel 9 …"},
		"in the second command":      {gang, 120, "a slot: gang os of 9 nodes goes once limits are raised: drydock limits set --max-parallel 9 …"},
		"behind all commands":        {gang, 140, "a slot: gang os of 9 nodes goes once limits are raised: drydock limits set --max-parallel 9; drydock limits set --held ops=9 …"},
		"in a quoted command":        {`it waits: "drydock approve worker-01", or deny it`, 36, "it waits …"},
		"behind a quoted command":    {`it waits: "drydock approve worker-01", or deny it`, 49, `it waits: "drydock approve worker-01", or …`},
		"in a quoted argument":       {"frozen: drydock thaw --by 'jane; ops, too' ends it", 40, "frozen …"},
		"in an argument in brackets": {"look at it (kubectl get nodes --watch)", 34, "look at it …"},
		"a command in its argument":  {"frozen: drydock thaw --by drydock ends it, and more", 38, "frozen …"},
		"a command at the beginning": {"drydock limits set --max-parallel 2", 20, "…"},
	} {
		if got := bounds.Words(c.text, c.most); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWordsTakesNoMoreThanItMay(t *testing.T) {
	parts := []string{"node", "waits: ", "drydock limits set --max-parallel 3", " (", ")", "; ", " ", "'", `"`, "<", "…", "drydock "}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		most := rapid.IntRange(10, 300).Draw(t, "most")
		got := bounds.Words(text, most)
		kept := strings.TrimRight(strings.TrimSuffix(got, "…"), " ")
		if size := sizeOf(t, got) - len(`""`); size > most || !strings.HasPrefix(text, kept) {
			t.Fatalf("%d bytes of %d: %q", size, most, got)
		}
		if sizeOf(t, text)-len(`""`) <= most && got != text {
			t.Fatalf("%q fits into %d, and became %q", text, most, got)
		}
	})
}

type inner struct {
	Words []string
	Data  []byte
}

type outer struct {
	Text    string
	Inner   *inner
	List    []inner
	Reasons map[string]int
}

func TestFitCutsEverythingAndChangesNothingThatIsShared(t *testing.T) {
	hostile := strings.Repeat("<", 400<<10)
	shared := &inner{Words: []string{"short", hostile}, Data: []byte("data")}
	list := make([]inner, 500)
	for i := range list {
		list[i] = inner{Words: []string{"x"}}
	}
	list[3] = *shared
	before := outer{Text: hostile, Inner: shared, List: list, Reasons: map[string]int{"a": 1}}
	value := before
	bounds.Fit(&value)
	if size := sizeOf(t, value); size > 64<<10 {
		t.Errorf("%d bytes are left", size)
	}
	if len(value.List) != bounds.List || value.Inner.Words[0] != "short" || string(value.Inner.Data) != "data" || value.Reasons["a"] != 1 {
		t.Errorf("what fits was changed: %d entries, %q, %v", len(value.List), value.Inner.Words[0], value.Reasons)
	}
	if shared.Words[1] != hostile || list[3].Words[1] != hostile {
		t.Error("what others hold was changed")
	}
	same := outer{Text: "x", Inner: &inner{Words: []string{"y"}}}
	fitted := same
	bounds.Fit(&fitted)
	if fitted.Inner != same.Inner {
		t.Error("what fits was copied")
	}
	large := outer{Reasons: map[string]int{hostile: 1}}
	bounds.Fit(&large)
	if len(large.Reasons) != 0 {
		t.Error("a map with a text that is too long is kept")
	}
}
