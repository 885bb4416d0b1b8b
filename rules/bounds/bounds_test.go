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
