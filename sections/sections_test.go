package sections_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/sections"
)

type entry struct {
	Text string          `json:"text,omitempty"`
	Wait period.Duration `json:"wait,omitzero"`
}

func TestDecode(t *testing.T) {
	got, err := sections.Decode[entry]("things", []byte(`{"b": {"text": "x"}, "a": {"wait": "90s"}, "c": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	wait, err := period.ParseDuration("90s")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]entry{"a": {Wait: wait}, "b": {Text: "x"}, "c": {}}, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestErrorsNameTheEntryAndItsField(t *testing.T) {
	for input, want := range map[string]string{
		`[]`:                      "things: want an object with an entry for each name",
		`{"a": 3}`:                "things.a: want a JSON object, got a number",
		`{"a": {"txet": ""}}`:     `things.a.txet: unknown field; did you mean "text"?`,
		`{"a": {"text": null}}`:   "things.a.text: null is not a value; leave the field out to get its default",
		`{"a": {"wait": "soon"}}`: `things.a.wait: "soon" is not a duration: write it like "90s", "1h30m", "2d" or "0s"`,
		`{"b": {"text": 1}, "a": {"x": 1, "text": 3}}`: "things.a.text: want a string, got number\nthings.a.x: unknown field\nthings.b.text: want a string, got number",
	} {
		if _, err := sections.Decode[entry]("things", []byte(input)); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\nwant %s", input, err, want)
		}
	}
}

func TestUnder(t *testing.T) {
	if got := sections.Under("a", nil); got != nil {
		t.Errorf("%v", got)
	}
	got := errors.Join(sections.Under("a", errors.New("b[0].c: is wrong\nhas nothing: want one"))...)
	if want := "a.b[0].c: is wrong\na: has nothing: want one"; got.Error() != want {
		t.Errorf("%v, want %s", got, want)
	}
}
