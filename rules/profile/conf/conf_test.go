package conf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

// top reads a file that is right.
func top(t *testing.T, file string, pairs ...string) (*Object, *Problems) {
	t.Helper()
	var p Problems
	o := Read([]byte(file), env(pairs...), &p)
	if err := p.Join(); err != nil {
		t.Fatal(err)
	}
	return o, &p
}

func TestReferences(t *testing.T) {
	pairs := []string{"A=alpha", "B=bravo", "EMPTY=", "NAME=A", "LIST=x@y, z@y", "QUOTED='a,b'", "NUMBER=0123", "ON=on"}
	for _, c := range []struct{ text, want string }{
		{"plain", "plain"},
		{"${A}", "alpha"},
		{"x${A}y${B}z", "xalphaybravoz"},
		{"${A}${B}", "alphabravo"},
		{"${NONE:default}", "default"},
		{"${NONE:-default}", "-default"},
		{"${EMPTY:default}", "default"},
		{"${A:default}", "alpha"},
		{"${NONE:}", ""},
		{"${NONE:a:b}", "a:b"},
		{"${NONE:${B}}", "bravo"},
		{"${NONE:${EMPTY:deep}}!", "deep!"},
		{"${A:+set}", "set"},
		{"${NONE:+set}", ""},
		{"${EMPTY:+set}", ""},
		{"${A:?message}", "alpha"},
		{"$$", "$"},
		{"$${A}", "${A}"},
		{"a$b", "a$b"},
		{"5$", "5$"},
		{"${${NAME}}", "alpha"},
		{"${NONE:x$}y}", "x}y"},
		{"{{ .Node.Name }} ${A}, and more", "{{ .Node.Name }} alpha, and more"},
		{"${QUOTED}", "a,b"},
		{"${NUMBER}", "0123"},
		{"${ON}", "on"},
		{"${LIST}", "x@y, z@y"},
		{"${fromTop}", "of the file"},
		{"${theirs}", "alpha"},
		{"${number}", "7"},
	} {
		o, p := top(t, "fromTop: of the file\nA2: x\ntheirs: ${A}\nnumber: 7\nvalue: '"+strings.ReplaceAll(c.text, "'", "''")+"'\n", pairs...)
		if got := o.Text("value"); got != c.want || p.Join() != nil {
			t.Errorf("%s is %q and not %q (%v)", c.text, got, c.want, p.Join())
		}
	}
}

func TestReferencesThatHaveNoValue(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"${NONE}", "value: ${NONE} has no value"},
		{"${EMPTY}", "value: ${EMPTY} has no value"},
		{"x${NONE}", "value: ${NONE} has no value"},
		{"${NONE:?set it}", "value: set it"},
		{"${A", "value: a reference ${ has no } at its end"},
		{"${A:b", "value: a reference ${ has no } at its end"},
		{"${}", "value: a reference ${} names nothing"},
		{"${loop}", "value: ${loop} leads back to itself: correct the reference"},
		{"${loop:default}x", ""},
		{"x${map}", "value: ${map} is a list or has keys of its own"},
		{strings.Repeat("${A:", 50) + strings.Repeat("}", 50), "value: references are nested too deep"},
	} {
		o, p := top(t, "loop: ${pool}\npool: ${loop}\nmap: {a: b}\nvalue: '"+c.text+"'\n", "A=", "EMPTY=")
		got := o.Text("value")
		switch err := p.Join(); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %q, %v", c.text, got, err)
		}
	}
}

func TestOnlyWhatIsReadNeedsAValue(t *testing.T) {
	o, p := top(t, "value: x\nother: ${NONE}\n")
	if o.Text("value") != "x" || p.Join() != nil {
		t.Error(p.Join())
	}
}

func TestKeysAreNeverInterpolated(t *testing.T) {
	o, _ := top(t, "'${A}': x\n", "A=alpha")
	if got := o.Unknown(); !slices.Equal(got, []string{"${A}"}) {
		t.Error(got)
	}
}

func TestATopLevelKeyWins(t *testing.T) {
	o, p := top(t, "A: mine\ncommon: {key: k}\nvalue: ${A}\nconfig: ${common}\n", "A=alpha", "common=env")
	if got := o.Text("value"); got != "mine" {
		t.Error(got)
	}
	if got := o.Object("config").Text("key"); got != "k" || p.Join() != nil {
		t.Error(got, p.Join())
	}
}

func TestScalarsAreReadAsThere(t *testing.T) {
	o, p := top(t, `
bool: True
spoken: yes
number: 60
fraction: 1.5
clock: 11:00
date: 2026-01-02
many: a@b
list: [mon, 2, true]
nothing:
duration: 60
half: 1.5
written: 1h30m
twice: first
twice: last
`)
	for _, c := range []struct{ key, want string }{
		{"bool", "true"}, {"spoken", "true"}, {"number", "60"}, {"fraction", "1.5"}, {"clock", "11:00"}, {"date", "2026-01-02"},
		{"nothing", ""}, {"absent", ""}, {"twice", "last"},
	} {
		if got := o.Text(c.key); got != c.want {
			t.Errorf("%s is %q and not %q", c.key, got, c.want)
		}
	}
	if got := o.Texts("many"); !slices.Equal(got, []string{"a@b"}) {
		t.Error(got)
	}
	if got := o.Texts("list"); !slices.Equal(got, []string{"mon", "2", "true"}) {
		t.Error(got)
	}
	for key, want := range map[string]time.Duration{"duration": time.Minute, "half": 1500 * time.Millisecond, "written": 90 * time.Minute, "absent": time.Hour} {
		if got := o.Duration(key, time.Hour); got != want {
			t.Errorf("%s is %s and not %s", key, got, want)
		}
	}
	if !o.Bool("spoken") || !o.IsBool("bool") || o.IsBool("clock") {
		t.Error("booleans")
	}
	if err := p.Join(); err != nil {
		t.Error(err)
	}
}

func TestAListOutOfTheEnvironment(t *testing.T) {
	o, p := top(t, "to: ${LIST}\nalso: ['${LIST}', b]\n", "LIST=x@y, z@y")
	if got := o.Texts("to"); !slices.Equal(got, []string{"x@y", "z@y"}) {
		t.Error(got)
	}
	if got := o.Texts("also"); !slices.Equal(got, []string{"x@y, z@y", "b"}) || p.Join() != nil {
		t.Error(got, p.Join())
	}
}

func TestNumbersOutOfTheEnvironment(t *testing.T) {
	o, p := top(t, "max: ${MAX}\nperiod: ${PERIOD}\nauth: ${AUTH}\n", "MAX=5", "PERIOD=90", "AUTH=on")
	if o.Int("max", 0) != 5 || o.Duration("period", 0) != 90*time.Second || !o.Bool("auth") || p.Join() != nil {
		t.Error(p.Join())
	}
}

func TestWhatVariablesGiveIsNotRepeated(t *testing.T) {
	o, p := top(t, "max: ${SECRET}\nauth: ${SECRET}\nperiod: ${SECRET}\nobject: ${SECRET}\nlist: ${SECRET}\n", "SECRET=hunter2")
	o.Int("max", 0)
	o.Bool("auth")
	o.Duration("period", 0)
	o.Object("object")
	o.Objects("list", "")
	if err := p.Join(); len(AsProblems(err)) != 5 || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestRequired(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"value: ''", "value: required: what"},
		{"{}", "value: required: what"},
		{"value: ~", "value: required: what"},
	} {
		o, p := top(t, c.file)
		o.Required("value", "what")
		if err := p.Join(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.file, err)
		}
	}
	o, p := top(t, "max: 0\nlist: []\nduration: 0s\nwait: 60\nzero: 0s\nobject: 5\ntext: {a: b}\ninstances: {a: b}\nflag: maybe\n")
	o.RequiredInt("max", "a")
	o.RequiredTexts("list", "b")
	o.RequiredDuration("duration", "c")
	o.WrittenDuration("wait", "d")
	o.WrittenDuration("zero", "e")
	o.Object("object")
	o.Text("text")
	o.Objects("instances", "name")
	o.Bool("flag")
	var paths []string
	for _, problem := range AsProblems(p.Join()) {
		paths = append(paths, problem.Path)
	}
	if want := "max list duration wait object text instances flag"; strings.Join(paths, " ") != want {
		t.Errorf("%v", p.Join())
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"a: [", "the file is no YAML: yaml: line 1: did not find expected node content"},
		{"- a", "the file is a list"},
		{"just text", `the file is "just text"`},
		{"yes: x", `true: the key "true" is read as bool`},
		{"a: &a [*a]", "the file is no YAML"},
		{"a: " + strings.Repeat("x", MaxFile), "the file has more than 1048576 bytes"},
		{"", "the file has nothing in it"},
		{"# nothing\n---\n", "the file has nothing in it"},
	} {
		var p Problems
		top := Read([]byte(c.file), nil, &p)
		if err := p.Join(); err == nil || !strings.HasPrefix(err.Error(), c.want) || len(p.List()) != 1 {
			t.Errorf("%.40s: %v", c.file, err)
		}
		if top.Absent() != (c.file != "yes: x") {
			t.Errorf("%.40s: there is something to read: %t", c.file, !top.Absent())
		}
	}
}

func TestOnlyTheFirstDocumentIsRead(t *testing.T) {
	for file, more := range map[string]bool{
		"a: 1\n": false, "---\na: 1\n---\n": false, "a: 1\n---\nb: 2\n": true, "": false, "a: [": false, "a: 1\n---\nb: [": false,
	} {
		if HasMore([]byte(file)) != more {
			t.Errorf("%q has more: %t", file, !more)
		}
	}
}

func TestRepeatedKeys(t *testing.T) {
	if got := Repeated([]byte("a: 1\nb: 2\na: 3\n")); len(got) != 1 || !strings.Contains(got[0], `"a"`) {
		t.Error(got)
	}
	if got := Repeated([]byte("a: {b: 1}\nc: {b: 1}\n")); got != nil {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	o, _ := top(t, "config: {a: '${A}', b: [1, {c: '${A:x}y'}], d: true}\n", "A=alpha")
	got, err := o.Object("config").JSON("d")
	if want := `{"a":"alpha","b":[1,{"c":"alphay"}]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestEachProblemIsReportedOnce(t *testing.T) {
	var p Problems
	p.Add("a", "do", "wrong %d", 1)
	p.Add("a", "do", "wrong %d", 1)
	p.Add("", "", "other")
	if got := fmt.Sprint(p.Join()); got != "a: wrong 1: do\nother" {
		t.Errorf("%q", got)
	}
	if got := AsProblems(fmt.Errorf("x")); len(got) != 1 || got[0].Text != "x" {
		t.Error(got)
	}
}
