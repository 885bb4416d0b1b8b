package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var chainKey = []byte("a key of some length")

// chained are the lines of a chain of so many records.
func chained(t interface{ Fatal(...any) }, writer string, n int, key []byte) [][]byte {
	var lines [][]byte
	link := Link{Writer: writer}
	for i := range n {
		r := short("worker-01", fmt.Sprintf("run-%d", i+1), "Completed", time.Duration(i)*time.Hour)
		r.Reason = fmt.Sprintf("kernel %d <&> \u2028", i)
		sealed, err := r.Sealed(link, key)
		if err != nil {
			t.Fatal(err)
		}
		line, err := sealed.Encode()
		if err != nil {
			t.Fatal(err)
		}
		link, lines = sealed.Link, append(lines, line)
	}
	return lines
}

func verdictOf(lines [][]byte, keys [][]byte, expected ...Expected) Verdict {
	v := NewVerifier(keys...)
	for i, line := range lines {
		v.Line("audit.jsonl", i+1, line)
	}
	return v.Verdict(expected...)
}

// found are the findings as "kind line number".
func found(v Verdict) string {
	var all []string
	for _, f := range v.Findings {
		all = append(all, fmt.Sprintf("%s %d %d", f.Kind, f.Line, f.Number))
	}
	return strings.Join(all, ", ")
}

// resealed is a record changed by somebody who knows how hashes are made.
func resealed(t *testing.T, line []byte, change func(*Record)) []byte {
	t.Helper()
	r, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	change(&r)
	r.Hash = ""
	text, err := r.Encode()
	if err == nil {
		r.Hash, err = Digest(text)
	}
	if err == nil {
		text, err = r.Encode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatVerificationFinds(t *testing.T) {
	lines := chained(t, "w", 6, chainKey)
	other := chained(t, "x", 2, chainKey)
	keys := [][]byte{chainKey}
	last, err := Decode(lines[5])
	if err != nil {
		t.Fatal(err)
	}
	plain, err := short("worker-01", "run-9", "Completed", 0).Encode()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) []byte { return bytes.Replace(lines[2], []byte(old), []byte(new), 1) }
	at := func(i int, line []byte) [][]byte { all := slices.Clone(lines); all[i] = line; return all }
	for name, c := range map[string]struct {
		lines    [][]byte
		keys     [][]byte
		expected []Expected
		want     string
	}{
		"nothing":                            {lines, keys, nil, ""},
		"nothing in two chains":              {slices.Concat(lines[:3], other[:1], lines[3:], other[1:]), keys, nil, ""},
		"the first ones removed":             {lines[2:], keys, nil, ""},
		"the last one as expected":           {lines, keys, []Expected{{Number: 6}, {Hash: last.Hash}}, ""},
		"more than expected":                 {lines, keys, []Expected{{Number: 4}}, ""},
		"the end cut off, and nobody knows":  {lines[:4], keys, nil, ""},
		"the end cut off":                    {lines[:4], keys, []Expected{{Number: 6}}, "cut 0 4"},
		"the end cut off, by its hash":       {lines[:4], keys, []Expected{{Hash: last.Hash}}, "cut 0 0"},
		"everything cut off":                 {nil, keys, []Expected{{Number: 1}}, "cut 0 0"},
		"one missing":                        {slices.Delete(slices.Clone(lines), 2, 3), keys, nil, "missing 3 4"},
		"several missing":                    {slices.Delete(slices.Clone(lines), 1, 4), keys, nil, "missing 2 5"},
		"one twice":                          {slices.Insert(slices.Clone(lines), 4, lines[2]), keys, nil, "repeated 5 3"},
		"two swapped":                        {[][]byte{lines[0], lines[2], lines[1], lines[3]}, keys, nil, "misplaced 3 2"},
		"changed":                            {at(2, edit("kernel 2", "kernel 9")), keys, nil, "changed 3 3"},
		"another number":                     {at(2, edit(`"number":3`, `"number":30`)), keys, nil, "changed 3 30, missing 4 4"},
		"a field added":                      {at(2, edit(`{`, `{"added":1,`)), keys, nil, "changed 3 3"},
		"a field twice":                      {at(2, edit(`{`, `{"reason":"x",`)), keys, nil, "unreadable 3 0, missing 4 4"},
		"torn":                               {at(2, lines[2][:40]), keys, nil, "unreadable 3 0, missing 4 4"},
		"no longer chained":                  {at(2, plain), keys, nil, "unchained 3 0, missing 4 4"},
		"changed, and its hash with it":      {at(2, resealed(t, lines[2], func(r *Record) { r.Reason = "x" })), nil, nil, "broken 4 4"},
		"the same, with a key":               {at(2, resealed(t, lines[2], func(r *Record) { r.Reason = "x" })), keys, nil, "unproven 3 3, broken 4 4"},
		"the last one, and its hash with it": {at(5, resealed(t, lines[5], func(r *Record) { r.Reason = "x" })), keys, nil, "unproven 6 6"},
		"that, without a key":                {at(5, resealed(t, lines[5], func(r *Record) { r.Reason = "x" })), nil, []Expected{{Hash: last.Hash}}, "cut 0 0"},
		"without its mac":                    {at(5, resealed(t, lines[5], func(r *Record) { r.MAC = "" })), keys, nil, "unproven 6 6"},
		"a first one behind another":         {[][]byte{resealed(t, lines[0], func(r *Record) { r.Previous = last.Hash })}, nil, nil, "broken 1 1"},
		"of another writer's key":            {lines, [][]byte{[]byte("a key of another writer")}, nil, "unproven 1 1, unproven 2 2, unproven 3 3, unproven 4 4, unproven 5 5, unproven 6 6"},
	} {
		v := verdictOf(c.lines, c.keys, c.expected...)
		if got := found(v); got != c.want || v.Intact != (c.want == "") {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestADigestIsOfWhatARecordSays(t *testing.T) {
	line := chained(t, "w", 1, nil)[0]
	// As a collector may write it that has read it: with spaces, in another order, and without needless escapes.
	var object map[string]any
	if err := json.Unmarshal(line, &object); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	encoder := json.NewEncoder(&again)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(object); err != nil {
		t.Fatal(err)
	}
	if v := verdictOf([][]byte{again.Bytes()}, nil); !v.Intact || bytes.Equal(line, bytes.TrimSpace(again.Bytes())) {
		t.Errorf("%+v", v)
	}
}

func TestAnySingleChangeIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "records")
		var key []byte
		var keys [][]byte
		if rapid.Bool().Draw(t, "keyed") {
			key, keys = chainKey, [][]byte{chainKey}
		}
		lines := chained(t, "w", n, key)
		last, err := Decode(lines[n-1])
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, n-1).Draw(t, "line")
		switch rapid.SampledFrom([]string{"byte", "delete", "insert", "remove", "repeat", "swap", "cut"}).Draw(t, "change") {
		case "byte":
			place := rapid.IntRange(0, len(lines[at])-1).Draw(t, "place")
			changed := slices.Clone(lines[at])
			changed[place] = rapid.Byte().Draw(t, "byte")
			lines[at] = saysAnother(t, lines[at], changed)
		case "delete":
			place := rapid.IntRange(0, len(lines[at])-1).Draw(t, "place")
			lines[at] = saysAnother(t, lines[at], slices.Delete(slices.Clone(lines[at]), place, place+1))
		case "insert":
			place := rapid.IntRange(0, len(lines[at])).Draw(t, "place")
			lines[at] = saysAnother(t, lines[at], slices.Insert(slices.Clone(lines[at]), place, rapid.Byte().Draw(t, "byte")))
		case "remove":
			if at == 0 {
				t.Skip("the first ones may be gone")
			}
			lines = slices.Delete(lines, at, at+1)
		case "repeat":
			lines = slices.Insert(lines, rapid.IntRange(0, n).Draw(t, "place"), lines[at])
		case "swap":
			with := rapid.IntRange(0, n-1).Draw(t, "with")
			if with == at {
				t.Skip("nothing is changed")
			}
			lines[at], lines[with] = lines[with], lines[at]
		case "cut":
			lines = lines[:at]
		}
		if v := verdictOf(lines, keys, Expected{Hash: last.Hash}); v.Intact {
			t.Fatalf("nothing is found in\n%s", bytes.Join(lines, []byte("\n")))
		}
	})
}

// saysAnother is the changed line, where it does not say the same: with a space between two fields, or another way to
// write a character, it does.
func saysAnother(t *rapid.T, line, changed []byte) []byte {
	before, err := parse(line)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parse(changed)
	if err == nil && fmt.Sprint(before) == fmt.Sprint(after) {
		t.Skip("it says the same")
	}
	return changed
}

func TestExpectedIsANumberOrAHash(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for text, want := range map[string]Expected{"7": {Number: 7}, hash: {Hash: hash}, strings.ToUpper(hash): {Hash: hash}} {
		if got, err := ParseExpected(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", hash[1:], "1.5"} {
		if got, err := ParseExpected(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestNoTextIsTooLongWhateverIsSaid(t *testing.T) {
	long := strings.Repeat("<", 400_000)
	r := full()
	r.Reason, r.Failure, r.Owner, r.Ticket, r.Specification = long, long, long, long, json.RawMessage(`"`+strings.Repeat("x", 400_000)+`"`)
	for range 2000 {
		r.Phases = append(r.Phases, Phase{Phase: "Ready", Message: long})
		r.States = append(r.States, State{State: "Escalated", Message: long})
		r.Messages = append(r.Messages, Message{Name: long, By: long, Comment: long, Effect: long})
		r.Hooks = append(r.Hooks, Hook{Outcome: long, By: long})
		r.Escalations = append(r.Escalations, Escalation{By: long, Why: long})
		r.Blockers = append(r.Blockers, Blocker{Message: long, Reason: long, Owner: long})
		r.AdditionalRequestors = append(r.AdditionalRequestors, long)
	}
	b := r.Bounded()
	line, err := b.Encode()
	if err != nil || len(line) > 2<<20 {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	if len(b.States)+b.LeftOut["states"] != len(r.States) || len(b.Messages)+b.LeftOut["messages"] != len(r.Messages) || len(b.Phases)+b.MorePhases != len(r.Phases)+r.MorePhases {
		t.Errorf("left out %v", b.LeftOut)
	}
	if last := r.Messages[len(r.Messages)-1]; len(r.Reason) != len(long) || len(last.By) != len(long) {
		t.Error("the record itself was changed")
	}
	if _, err := Decode(line); err != nil {
		t.Error(err)
	}
}
