package starter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/startertest"
)

const auditKey = "a key of some length"

// auditFile is a file of an audit sink with a chain of three records, changed by somebody.
func auditFile(t *testing.T, change func(lines []string) []string) (path string, last record.Link) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	last = record.Link{Writer: "w"}
	var lines []string
	for i, run := range []string{"1", "2", "3"} {
		sealed, err := past(run, 30-i).Record("", startertest.Noon).Sealed(last, []byte(auditKey))
		if err != nil {
			t.Fatal(err)
		}
		line, err := sealed.Encode()
		if err != nil {
			t.Fatal(err)
		}
		lines, last = append(lines, string(line)+"\n"), sealed.Link
	}
	if change != nil {
		lines = change(lines)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, last
}

func keyFile(t *testing.T, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuditVerify(t *testing.T) {
	whole, last := auditFile(t, nil)
	gap, _ := auditFile(t, func(lines []string) []string { return []string{lines[0], lines[2]} })
	cut, _ := auditFile(t, func(lines []string) []string { return lines[:2] })
	changed, _ := auditFile(t, func(lines []string) []string {
		lines[1] = strings.Replace(lines[1], `"ops"`, `"bob"`, 1)
		return lines
	})
	key, other := keyFile(t, auditKey), keyFile(t, "a key of somebody else")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"intact":            {[]string{whole}, exit.OK, "without a key nobody can tell"},
		"proven":            {[]string{whole, "--key-file", key}, exit.OK, " intact\n"},
		"a rotated key":     {[]string{whole, "--key-file", other, "--key-file", key, "--expect-last", "3"}, exit.OK, "numbers 1 to 3, the last with hash " + last.Hash},
		"another's key":     {[]string{whole, "--key-file", other}, exit.Failed, "unproven"},
		"one missing":       {[]string{gap}, exit.Failed, "number 2 is missing before it"},
		"one changed":       {[]string{changed}, exit.Failed, changed + ":2"},
		"cut off, unknown":  {[]string{cut}, exit.OK, "numbers 1 to 2"},
		"cut off":           {[]string{cut, "--expect-last", "3"}, exit.Failed, "the records end with number 2: number 3 is expected"},
		"cut off by a hash": {[]string{cut, "--expect-last", last.Hash}, exit.Failed, "there is no record with the hash"},
	} {
		code, out, said := drydock(t, append([]string{"audit", "verify"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.want) || said != "" {
			t.Errorf("%s: code %d, %q\n%s", name, code, said, out)
		}
	}
	code, out, _ := drydock(t, "audit", "verify", gap, "-o", "json")
	var verdict record.Verdict
	if err := json.Unmarshal([]byte(out), &verdict); err != nil || code != exit.Failed || verdict.Intact || len(verdict.Findings) != 1 ||
		verdict.Findings[0].Kind != record.Missing || verdict.Findings[0].Line != 2 || verdict.Records != 2 {
		t.Errorf("code %d, %v\n%s", code, err, out)
	}
	code, out, _ = drydock(t, "audit", "verify", whole, "-o", "json")
	if code != exit.OK || !strings.Contains(out, `"intact": true`) || !strings.Contains(out, `"findings": []`) {
		t.Errorf("code %d\n%s", code, out)
	}
}

func TestAuditVerifyRefusesWhatMakesNoSense(t *testing.T) {
	whole, _ := auditFile(t, nil)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"audit", "verify"}, exit.Usage, "audit verify FILE"},
		{[]string{"audit", "verify", whole, "-o", "xml"}, exit.Usage, "want one of table, wide, json, yaml"},
		{[]string{"audit", "verify", whole, "--expect-last", "soon"}, exit.Usage, `--expect-last: "soon": want the number of a record, or its hash`},
		{[]string{"audit", "verify", whole, "--key-file", "/no/such/key"}, exit.Usage, "--key-file: reading a secret: open /no/such/key"},
		{[]string{"audit", "verify", whole, "--key-file", keyFile(t, "short")}, exit.Usage, "--key-file: the key is too short"},
		{[]string{"audit", "verify", "/no/such/file"}, exit.Failed, "there is no file /no/such/file"},
	} {
		if code, _, said := drydock(t, c.args...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%v: code %d, %q, want %q", c.args, code, said, c.want)
		}
	}
}
