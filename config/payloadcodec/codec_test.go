package payloadcodec

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

func newKey(t *testing.T) string {
	t.Helper()
	raw := make([]byte, keySize)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "keys")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open is a codec, and what encrypts with it.
func open(t *testing.T, path string) (*Codec, converter.DataConverter) {
	t.Helper()
	c, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
}

const secret = "kernel 6.12 for the customer"

func TestKeysAreRotated(t *testing.T) {
	first, second := newKey(t), newKey(t)
	path := write(t, "", "# newest first\n2026-05 "+first+"\n")
	c, data := open(t, path)
	before, err := data.ToPayload(secret)
	if err != nil || bytes.Contains(before.Data, []byte(secret)) || string(before.Metadata[metadataKeyID]) != "2026-05" {
		t.Fatalf("%v, %v", before, err)
	}
	write(t, path, "2026-11 "+second+"\n\n2026-05 "+first+"\n")
	now := time.Now().Add(time.Hour)
	c.keys.now = func() time.Time { return now }
	after, err := data.ToPayload(secret)
	if err != nil || string(after.Metadata[metadataKeyID]) != "2026-11" {
		t.Fatalf("%v, %v", after, err)
	}
	// Another process that has just been told of the new key, and has not looked yet.
	stale, others := open(t, write(t, "", "2026-05 "+first+"\n"))
	write(t, stale.keys.path, "2026-05 "+first+"\n2026-11 "+second+"\n")
	for _, p := range []*commonpb.Payload{before, after} {
		for _, dc := range []converter.DataConverter{data, others} {
			var got string
			if err := dc.FromPayload(p, &got); err != nil || got != secret {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
	// A file that is broken leaves the keys that there were.
	write(t, path, "half of a")
	now = now.Add(time.Hour)
	if p, err := data.ToPayload(secret); err != nil || string(p.Metadata[metadataKeyID]) != "2026-11" {
		t.Errorf("%v, %v", p, err)
	}
	_, without := open(t, write(t, "", "2026-11 "+second))
	if err := without.FromPayload(before, new(string)); err == nil || !strings.Contains(err.Error(), `key "2026-05"`) {
		t.Errorf("error = %v", err)
	}
}

func TestWhatWasChangedIsNotBelieved(t *testing.T) {
	path := write(t, "", "a "+newKey(t)+"\nb "+newKey(t))
	_, data := open(t, path)
	p, err := data.ToPayload(secret)
	if err != nil {
		t.Fatal(err)
	}
	p.Data[len(p.Data)-1] ^= 1
	if err := data.FromPayload(p, new(string)); err == nil || !strings.Contains(err.Error(), "cannot be decrypted") {
		t.Errorf("error = %v", err)
	}
	p.Data[len(p.Data)-1] ^= 1
	p.Metadata[metadataKeyID] = []byte("b")
	if err := data.FromPayload(p, new(string)); err == nil {
		t.Error("decrypted with another key")
	}
}

func TestWhatIsNotEncryptedIsTakenAsItIs(t *testing.T) {
	_, data := open(t, write(t, "", "a "+newKey(t)))
	plain, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"node": "worker-01"})
	if err != nil {
		t.Fatal(err)
	}
	var raw converter.RawValue
	if err := data.FromPayload(plain, &raw); err != nil || string(raw.Payload().GetData()) != `{"node":"worker-01"}` {
		t.Errorf("%s, %v", raw.Payload().GetData(), err)
	}
	// A raw value is encrypted on its way out, and comes back as it was.
	sent, err := data.ToPayload(raw)
	if err != nil || bytes.Contains(sent.Data, []byte("worker-01")) {
		t.Fatalf("%v, %v", sent, err)
	}
	if err := data.FromPayload(sent, &raw); err != nil || string(raw.Payload().GetData()) != `{"node":"worker-01"}` {
		t.Errorf("%s, %v", raw.Payload().GetData(), err)
	}
}

func TestAWrongFileNamesTheLine(t *testing.T) {
	good := newKey(t)
	for text, want := range map[string]string{
		"":                                   "no key",
		"a":                                  "line 1",
		"a " + good + "\na " + good:          "line 2: another key has the name a",
		"a c2hvcnQ=":                         "line 1: the key has 5 bytes; want 32",
		"# new\na " + good[:20] + "!":        "line 2: the key is not Base64",
		strings.Repeat("x", 65) + " " + good: "line 1: the name has 65 bytes",
	} {
		_, err := Open(write(t, "", text), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), good[:10]) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("there is no such file")
	}
}
