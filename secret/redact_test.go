package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drydock.dev/drydock/secret"
)

const canary = `c4nary"of&a secret/ü+𝄞`

func TestEveryFormIsRedacted(t *testing.T) {
	asJSON, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	const ascii = `c4nary\"of&a secret/\u00fc+\ud834\udd1e`
	for name, form := range map[string]string{
		"as it is": canary, "in capitals": strings.ToUpper(canary), "in a query": url.QueryEscape(canary),
		"in a path": url.PathEscape(canary), "in small hex": strings.ToLower(url.QueryEscape(canary)), "quoted": fmt.Sprintf("%q", canary),
		"in JSON": string(asJSON), "in JSON without HTML": strings.ReplaceAll(string(asJSON), `\u0026`, "&"), "in JSON as ASCII": ascii,
		"base64": base64.StdEncoding.EncodeToString([]byte(canary)), "base64 of URLs": base64.URLEncoding.EncodeToString([]byte(canary)),
		"base64 without padding": base64.RawStdEncoding.EncodeToString([]byte(canary)), "in part": "c4nary",
	} {
		var r secret.Redactor
		r.Add("another", canary)
		got := r.Redact("who is " + form + "?")
		if strings.Trim(got, `"`) == "" || strings.ReplaceAll(got, `"`, "") != "who is (secret)?" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPartsOfURLsAreRedactedAndTheirHostIsNot(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("user:pa55"))
	for value, c := range map[string]struct{ text, want string }{
		"https://hooks.example.com/services/T0/canary": {
			"posting to https://hooks.example.com/other/canary failed", "posting to https://hooks.example.com/other/(secret) failed"},
		"https://user:pa55word@example.com/x?token=can%2Fary": {"pa55word at example.com with can/ary", "(secret) at example.com with (secret)"},
		"discord://canarytoken@12345678":                      {"canarytoken to 12345678", "(secret) to (secret)"},
		"http://user:pa55@example.com":                        {"Basic " + basic, "Basic (secret)"},
		"short/word":                                          {"a short word stays", "a short word stays"},
	} {
		var r secret.Redactor
		r.Add(value)
		if got := r.Redact(c.text); got != c.want {
			t.Errorf("%s: %s, want %s", value, got, c.want)
		}
	}
}

// What a receiver echoes is seldom the whole header: it is the token, what is in it, or what it makes of it.
func TestWhateverIsEchoedOfAHeaderIsRedacted(t *testing.T) {
	const token = "ab-cd_ef.gh~ij"
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJvcHMifQ.Qx-1_z-Y7_k-L0w_9a-bC"
	pair := base64.StdEncoding.EncodeToString([]byte("robot:hu-nt.er2"))
	for name, c := range map[string]struct{ value, echoed string }{
		"the token of Bearer":            {"Bearer " + token, token},
		"the token of another scheme":    {"GenieKey " + token, token},
		"the token in a URL":             {"Bearer " + token, url.QueryEscape(token)},
		"the token in base64":            {"Bearer " + token, base64.StdEncoding.EncodeToString([]byte(token))},
		"the token within base64":        {"Bearer " + token, base64.RawURLEncoding.EncodeToString([]byte("x" + token + "yz"))[2:20]},
		"the token in HTML":              {`Bearer a&b"c'd<e>f`, "a&amp;b&#34;c&#39;d&lt;e&gt;f"},
		"the pair of Basic":              {"Basic " + pair, pair},
		"the pair of Basic, decoded":     {"Basic " + pair, "robot:hu-nt.er2"},
		"the user of Basic":              {"Basic " + pair, "robot"},
		"the password of Basic":          {"Basic " + pair, "hu-nt.er2"},
		"the password of Basic, encoded": {"Basic " + pair, base64.StdEncoding.EncodeToString([]byte("hu-nt.er2"))},
		"a small scheme":                 {"basic " + pair, "hu-nt.er2"},
		"the pair of a URL":              {"https://robot:pa55@example.com", base64.StdEncoding.EncodeToString([]byte("robot:pa55"))},
		"the user of a URL":              {"https://robot:pa55@example.com", "robot"},
		"a short password of a URL":      {"https://robot:pa55@example.com", "pa55"},
		"a segment of a URL":             {"https://example.com/hooks/ab-cd_ef", "ab-cd_ef"},
		"a JWT":                          {jwt, jwt},
		"a JWT's signature":              {jwt, "Qx-1_z-Y7_k-L0w_9a-bC"},
		"the signature of Bearer's JWT":  {"Bearer " + jwt, "Qx-1_z-Y7_k-L0w_9a-bC"},
	} {
		var r secret.Redactor
		r.Add(c.value)
		if got := r.Redact("denied: [" + c.echoed + "] for Bearer and Basic"); got != "denied: ["+secret.Hidden+"] for Bearer and Basic" {
			t.Errorf("%s: %s", name, got)
		}
	}
	var r secret.Redactor
	r.Add("Basic " + base64.StdEncoding.EncodeToString([]byte("ops:pa55")))
	if got := r.Redact("props and opsgenie are words, ops is none"); got != "props and opsgenie are words, (secret) is none" {
		t.Error(got)
	}
	if got := r.RedactWhole("ops7 ops:pa55"); got != "ops7 (secret)" {
		t.Error(got)
	}
}

func TestWithoutSecretsNothingIsRedacted(t *testing.T) {
	var r secret.Redactor
	r.Add("", "")
	if got := r.Redact("all of it"); got != "all of it" {
		t.Error(got)
	}
	if r.Add("\xff\xfe"); r.Redact("what is \xff\xfe") != "(secret)" {
		t.Error("a secret that is not text is shown")
	}
}

func TestAWholeSecretIsRedactedAndItsPartsStay(t *testing.T) {
	var r secret.Redactor
	r.Add("silence/token")
	if got := r.RedactWhole("silence-7 by silence%2Ftoken"); got != "silence-7 by (secret)" {
		t.Error(got)
	}
	if got := r.Redact("silence-7"); got != "(secret)-7" {
		t.Error(got)
	}
}

func TestWhatIsReadIsRedacted(t *testing.T) {
	var r secret.Redactor
	value, err := r.Read(secret.Value{File: file(t, "canary\n")})
	if err != nil || value != "canary" {
		t.Fatalf("%q, %v", value, err)
	}
	if _, err := r.Read(secret.Value{File: "/no/such"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	harmless := fmt.Errorf("closing: %w", fs.ErrClosed)
	if got := r.Error(harmless); !errors.Is(got, fs.ErrClosed) || r.Error(nil) != nil {
		t.Errorf("%v has lost what it wraps", got)
	}
	if got := r.Error(&fs.PathError{Op: "open", Path: "/canary", Err: fs.ErrClosed}); got.Error() != "open /(secret): file already closed" || errors.Is(got, fs.ErrClosed) {
		t.Errorf("%v", got)
	}
}

// However a text quotes a secret, and whatever stands around it, the secret is not in what is left.
func TestNoSecretIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(6, 40, -1).Draw(t, "value")
		around := rapid.StringN(0, 20, -1).Draw(t, "around")
		quote := rapid.SampledFrom([]func(string) string{
			func(s string) string { return s }, url.QueryEscape, url.PathEscape,
			func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
			func(s string) string { return fmt.Sprintf("%q", s) },
		}).Draw(t, "quote")
		var r secret.Redactor
		r.Add(value)
		left := r.Redact(around + quote(value) + around)
		// What stands around a secret may be a piece of the word that replaces it.
		left = strings.ReplaceAll(left, secret.Hidden, "\x00\x00")
		if !strings.Contains(value, "\x00") && strings.Contains(left, value) {
			t.Fatalf("%q is left in %q", value, left)
		}
	})
}

// A secret that begins in what is shown is taken out, wherever that ends.
func TestNoPieceOfASecretIsLeftAtTheEndOfAStart(t *testing.T) {
	const short = "kilo\u212a's"
	for _, echoed := range []string{canary, url.QueryEscape(canary), strings.ReplaceAll(short, "k", "\u212a"), "KiLOK'\u017f"} {
		var r secret.Redactor
		r.Add(canary, short)
		text := strings.Repeat("ü", 9) + echoed + strings.Repeat("ü", 300)
		for n := range 120 {
			got, whole := r.RedactStart(text, n)
			plain := strings.Trim(strings.Replace(got, secret.Hidden, "", 1), "ü")
			if plain != "" || whole || len(got) > n+len(secret.Hidden) {
				t.Fatalf("%d bytes of %q: %q, the whole of it %v", n, text, got, whole)
			}
		}
		if got, whole := r.RedactStart(text, len(text)); got != r.Redact(text) || !whole {
			t.Errorf("%q, the whole of it %v", got, whole)
		}
	}
}

func TestALongTokenIsFoundInALongText(t *testing.T) {
	r, text := longToken(1 << 12)
	if got := r.Redact(text); !strings.HasSuffix(got, ", "+secret.Hidden) {
		t.Errorf("the token is left: %s", got[len(got)-100:])
	}
}

// BenchmarkALongToken looks for more than a thousand forms of a token in a MiB.
func BenchmarkALongToken(b *testing.B) {
	r, text := longToken(1 << 15)
	for b.Loop() {
		r.Redact(text)
	}
}

// longToken is a text that ends with a token of more than 1 KB, and what redacts it.
func longToken(words int) (r *secret.Redactor, text string) {
	claims := make([]byte, 1000)
	for i := range claims {
		claims[i] = byte(i*i*31 + i*7 + i>>3)
	}
	token := "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(claims)
	r = &secret.Redactor{}
	r.Add("Bearer " + token)
	return r, strings.Repeat("some words of a page, <b>e30</b>, ", words) + token
}
