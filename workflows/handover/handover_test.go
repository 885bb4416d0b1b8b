package handover_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/workflows/handover"
)

type entry struct {
	ID   string `json:"id"`
	Text string `json:"text,omitempty"`
}

type state struct {
	At      string           `json:"at"`
	Entries []entry          `json:"entries,omitempty"`
	Inner   entry            `json:"inner,omitzero"`
	By      map[string]entry `json:"by,omitempty"`
	New     string           `json:"new,omitempty"`
	Shown   string           `json:"shown,omitempty"`
	Outer   *outer           `json:"outer,omitempty"`
}

type outer struct {
	Inner entry `json:"inner,omitzero"`
}

// same says whether two texts are the same JSON.
func same(t *testing.T, got, want string) {
	t.Helper()
	var trees [2]any
	for i, text := range []string{got, want} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&trees[i]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	one, err := json.Marshal(trees[0])
	two, err2 := json.Marshal(trees[1])
	if err != nil || err2 != nil || string(one) != string(two) {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestUnknownFieldsAreHandedOn(t *testing.T) {
	for name, c := range map[string]struct {
		given  string
		change func(*state)
		want   string
	}{
		"at the top, a number of many digits": {`{"at":"x","later":{"n":12345678901234567890.10}}`, nil, `{"at":"x","later":{"n":12345678901234567890.10}}`},
		"of an object":                        {`{"at":"x","inner":{"id":"i","later":[1]}}`, nil, `{"at":"x","inner":{"id":"i","later":[1]}}`},
		"of an object of which nothing else is said": {
			`{"at":"x","inner":{"later":[1]}}`, func(s *state) { s.Inner.ID = "i" }, `{"at":"x","inner":{"id":"i","later":[1]}}`,
		},
		"of a map": {`{"at":"x","by":{"a":{"id":"i","later":1}}}`, func(s *state) { s.At = "y" }, `{"at":"y","by":{"a":{"id":"i","later":1}}}`},
		"of an entry that has moved": {
			`{"at":"x","entries":[{"id":"a","later":1},{"id":"b"}]}`, func(s *state) { slices.Reverse(s.Entries) },
			`{"at":"x","entries":[{"id":"b"},{"id":"a","later":1}]}`,
		},
		"of an entry that has changed": {
			`{"at":"x","entries":[{"id":"a","later":1}]}`, func(s *state) { s.Entries[0].Text = "changed" },
			`{"at":"x","entries":[{"id":"a","text":"changed","later":1}]}`,
		},
		"and not of an entry that is gone": {
			`{"at":"x","entries":[{"id":"a","later":1},{"id":"b"}]}`, func(s *state) { s.Entries = s.Entries[1:] },
			`{"at":"x","entries":[{"id":"b"}]}`,
		},
		"and not of a list that is gone": {
			`{"at":"x","entries":[{"id":"a","later":1}]}`, func(s *state) { s.Entries = nil }, `{"at":"x"}`,
		},
		"and not of an object that is cleared": {
			`{"at":"x","inner":{"id":"i","later":[1]}}`, func(s *state) { s.Inner = entry{} }, `{"at":"x"}`,
		},
		"nor of what is below one": {
			`{"at":"x","outer":{"inner":{"id":"i","later":[1]}}}`, func(s *state) { s.Outer = nil }, `{"at":"x"}`,
		},
		"and not of a key that is gone": {
			`{"at":"x","by":{"a":{"id":"i","later":1},"b":{"id":"j","later":2}}}`, func(s *state) { delete(s.By, "a") },
			`{"at":"x","by":{"b":{"id":"j","later":2}}}`,
		},
		"of entries that read alike, in their order": {
			`{"at":"x","entries":[{"id":"a","later":1},{"id":"a","later":2},{"id":"b"}]}`, func(s *state) { s.Entries[0].Text = "changed" },
			`{"at":"x","entries":[{"id":"a","text":"changed","later":2},{"id":"a","later":1},{"id":"b"}]}`,
		},
		"and what is known is written as it is now": {`{"at":"x","new":"old"}`, func(s *state) { s.New = "" }, `{"at":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var s state
			unknown, err := handover.Decode([]byte(c.given), &s)
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(&s)
			}
			for range 2 { // to write it changes nothing
				got, err := handover.Encode(s, unknown)
				if err != nil {
					t.Fatal(err)
				}
				same(t, string(got), c.want)
			}
		})
	}
}

// large is written and read as a whole.
type large struct{ fields map[string]int }

func (large) Opaque()                            {}
func (l *large) MarshalJSON() ([]byte, error)    { return json.Marshal(l.fields) }
func (l *large) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &l.fields) }

type withLarge struct {
	At    string `json:"at"`
	Inner entry  `json:"inner,omitzero"`
	Large large  `json:"large"`
}

func TestAnOpaquePartIsReadAndWrittenAsAWhole(t *testing.T) {
	const given = `{"at":"x","inner":{"id":"i","later":1},"large":{"one":1,"later":2},"later":3}`
	var s withLarge
	unknown, err := handover.Decode([]byte(given), &s)
	if err != nil || s.Large.fields["later"] != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	delete(s.Large.fields, "later")
	s.At = "y"
	data, err := handover.Encode(&s, unknown)
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(data), `{"at":"y","inner":{"id":"i","later":1},"large":{"one":1},"later":3}`)
	if _, err := handover.Decode([]byte(`{"large":"x"}`), &s); err == nil {
		t.Error("a part that cannot be read is no error")
	}
	if _, err := handover.Decode([]byte(`[]`), &s); err == nil {
		t.Error("a list is no error")
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for given, want := range map[string]string{
		`{"at":"x","needs":1}`:     "",
		`{"at":"x","needs":2}`:     "needs a newer release",
		`{"at":"x","needs":"two"}`: "needs a newer release",
		`{"at":"x"`:                "reading the state",
		`{"at":"x"}{}`:             "more than one value",
		`{"at":1}`:                 "reading the state",
		`null`:                     "no JSON object",
		``:                         "reading the state",
	} {
		var s state
		_, err := handover.Decode([]byte(given), &s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

// older is what an earlier release takes as a state.
var older = handover.Contract{
	Fields:      handover.ParseFields("at entries entries.[].id inner inner.id by by.* by.*.id"),
	Dispensable: []string{"shown", "entries.[].text"},
	Values:      map[string][]string{"at": {"x", "y"}},
	Standstill:  `{"at":"stands"}`,
}

func TestAnEarlierReleaseSeesWhatItKnows(t *testing.T) {
	for name, c := range map[string]struct{ given, data, beside string }{
		"all of it":          {`{"at":"x","entries":[{"id":"a"}],"by":{"k":{"id":"b"}}}`, `{"at":"x","entries":[{"id":"a"}],"by":{"k":{"id":"b"}}}`, ""},
		"it does without":    {`{"at":"x","shown":"s"}`, `{"at":"x"}`, "drydock-rest"},
		"in a list":          {`{"at":"x","entries":[{"id":"a"},{"id":"b","text":"t"}]}`, `{"at":"x","entries":[{"id":"a"},{"id":"b"}]}`, "drydock-rest"},
		"it cannot do it":    {`{"at":"x","new":"n"}`, `{"at":"stands"}`, "drydock-state"},
		"in a map":           {`{"at":"x","by":{"k":{"id":"b","text":"t"}}}`, `{"at":"stands"}`, "drydock-state"},
		"an unknown value":   {`{"at":"z"}`, `{"at":"stands"}`, "drydock-state"},
		"of a newer release": {`{"at":"x","later":1}`, `{"at":"stands"}`, "drydock-state"},
		"it says nothing":    {`{"at":"x","later":false}`, `{"at":"x"}`, "drydock-rest"},
	} {
		t.Run(name, func(t *testing.T) {
			var s state
			unknown, err := handover.Decode([]byte(c.given), &s)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := older.Write(s, unknown)
			if err != nil {
				t.Fatal(err)
			}
			payload := raw.Payload()
			same(t, string(payload.GetData()), c.data)
			var beside string
			for _, key := range slices.Sorted(maps.Keys(payload.GetMetadata())) {
				if key != converter.MetadataEncoding {
					beside += key
				}
			}
			if beside != c.beside {
				t.Errorf("beside it is %q, want %q", beside, c.beside)
			}
			var again state
			unknown, err = handover.Read(raw, &again)
			if err != nil {
				t.Fatal(err)
			}
			got, err := handover.Encode(again, unknown)
			if err != nil {
				t.Fatal(err)
			}
			same(t, string(got), c.given)
		})
	}
}

// TestWithoutAStandstillTheWholeStateIsGiven: the earlier release refuses it then.
func TestWithoutAStandstillTheWholeStateIsGiven(t *testing.T) {
	contract := older
	contract.Standstill = ""
	raw, err := contract.Write(state{At: "x", New: "n"}, handover.Unknown{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(raw.Payload().GetData()), `{"at":"x","new":"n"}`)
}

func TestMustPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not")
		}
	}()
	_, err := handover.Decode(nil, new(state))
	handover.Must("the state", err)
}

// BenchmarkEncode hands on a list of which a newer release knows more, and of which every entry has changed.
func BenchmarkEncode(b *testing.B) {
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, `,{"id":"e-%d","later":%d}`, i, i)
	}
	var s state
	unknown, err := handover.Decode([]byte(`{"at":"x","entries":[`+text.String()[1:]+`]}`), &s)
	if err != nil {
		b.Fatal(err)
	}
	for i := range s.Entries {
		s.Entries[i].Text = "changed"
	}
	for b.Loop() {
		if _, err := handover.Encode(s, unknown); err != nil {
			b.Fatal(err)
		}
	}
}
