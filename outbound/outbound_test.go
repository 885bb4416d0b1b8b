package outbound_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
)

// The system's authorities are read once in a process, so that one is made before any test.
var ofTheSystem tls.Certificate

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "outbound")
		if err != nil {
			log.Print(err)
			return 1
		}
		defer os.RemoveAll(folder)
		file := filepath.Join(folder, "system.pem")
		if ofTheSystem, err = certificate(file); err != nil {
			log.Print(err)
			return 1
		}
		for name, value := range map[string]string{"SSL_CERT_FILE": file, "SSL_CERT_DIR": folder} {
			if err := os.Setenv(name, value); err != nil {
				log.Print(err)
				return 1
			}
		}
		return m.Run()
	}())
}

// certificate makes one for 127.0.0.1 that is its own authority, and writes it to a file.
func certificate(file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: filepath.Base(file)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, os.WriteFile(file, text, 0o600)
}

func serve(t *testing.T, certificate *tls.Certificate, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	if certificate == nil {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s.URL
}

// answer is what is seen of one.
type answer struct {
	status  int
	waited  time.Duration
	body    string
	bodyErr error
}

func get(t *testing.T, url string, o outbound.Options) (a answer, err error) {
	t.Helper()
	return getBy(t, url, o, outbound.ReadBody)
}

func getBy(t *testing.T, url string, o outbound.Options, read func(*http.Response) (string, error)) (a answer, err error) {
	t.Helper()
	client, err := outbound.NewClient(o)
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(outbound.NoteRetryAfter(t.Context(), &a.waited), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	a.body, a.bodyErr = read(response)
	return a, nil
}

// A file of authorities adds to the system's: who is reached without it is reached with it.
func TestTheAuthoritiesOfAFileAreAddedToTheSystems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.pem")
	own, err := certificate(file)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := certificate(filepath.Join(t.TempDir(), "stranger.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		server  tls.Certificate
		caFile  string
		trusted bool
	}{
		{"the system's, without a file", ofTheSystem, "", true},
		{"the system's, with a file", ofTheSystem, file, true},
		{"the file's, without it", own, "", false},
		{"the file's, with it", own, file, true},
		{"a stranger's", stranger, file, false},
	} {
		url := serve(t, &c.server, func(http.ResponseWriter, *http.Request) {})
		_, err := get(t, url, outbound.Options{CAFile: c.caFile})
		if (err == nil) != c.trusted || err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAFileOfAuthoritiesIsReadForEachCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.pem")
	if _, err := outbound.NewClient(outbound.Options{CAFile: file}); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "caFile: ") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("not yet"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := outbound.NewClient(outbound.Options{CAFile: file}); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Errorf("no certificate: %v", err)
	}
	own, err := certificate(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, serve(t, &own, func(http.ResponseWriter, *http.Request) {}), outbound.Options{CAFile: file}); err != nil {
		t.Error(err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	followed := false
	other := serve(t, nil, func(http.ResponseWriter, *http.Request) { followed = true })
	got, err := get(t, serve(t, nil, http.RedirectHandler(other, http.StatusTemporaryRedirect).ServeHTTP), outbound.Options{})
	if err != nil || got.status != http.StatusTemporaryRedirect || followed {
		t.Errorf("%v, followed %v", err, followed)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	url := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Own")+strings.Repeat("x", 100))
	})
	options := outbound.Options{MaxBody: 10, Header: http.Header{"X-Own": {"own"}}}
	if got, err := get(t, url, options); err != nil || got.bodyErr != nil || got.body != "ownxxxxxxx" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := getBy(t, url, options, func(r *http.Response) (string, error) {
		text, err := io.ReadAll(r.Body)
		return string(text), err
	})
	if err != nil || got.bodyErr == nil || !strings.Contains(got.bodyErr.Error(), "too large") {
		t.Errorf("a cut answer looks whole: %+v, %v", got, err)
	}
}

func TestACallEnds(t *testing.T) {
	hangs := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := get(t, hangs, outbound.Options{Timeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Client.Timeout") {
		t.Error(err)
	}
	stalls := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	})
	// Long enough for the header on a busy machine.
	got, err := get(t, stalls, outbound.Options{Timeout: 3 * time.Second})
	if err != nil || !errors.Is(got.bodyErr, context.DeadlineExceeded) {
		t.Errorf("an answer without an end: %+v, %v", got, err)
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "-5": 0, "soon": 0, "": 0, "99999999": 24 * time.Hour,
		time.Now().Add(72 * time.Hour).UTC().Format(http.TimeFormat): 24 * time.Hour,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):     0,
	} {
		got, err := get(t, serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusServiceUnavailable)
		}), outbound.Options{})
		if err != nil || got.waited != want {
			t.Errorf("%q: %s, %v", header, got.waited, err)
		}
	}
}

func TestURLs(t *testing.T) {
	for text, c := range map[string]struct {
		want  error
		plain string
	}{
		"https://h/p":         {nil, ""},
		"http://[::1]:8080":   {nil, ""},
		"https://h/p?k=v":     {nil, "has a user, a query or a fragment"},
		"https://h/p#k":       {nil, "has a user, a query or a fragment"},
		"https://h/p?":        {nil, "has a user, a query or a fragment"},
		"ftp://canary:x@h":    {outbound.ErrScheme, "is not an http or https URL"},
		"h:8080":              {outbound.ErrScheme, "is not an http or https URL"},
		"":                    {outbound.ErrScheme, "is not an http or https URL"},
		"http:///p":           {outbound.ErrNoHost, "is not an http or https URL"},
		"http://:8080":        {outbound.ErrNoHost, "is not an http or https URL"},
		"https://u:canary@h":  {outbound.ErrCredentials, "has a user, a query or a fragment"},
		"https://canary@h":    {outbound.ErrCredentials, "has a user, a query or a fragment"},
		"https://canary@ho s": {outbound.ErrNotURL, "is not an http or https URL"},
	} {
		_, err := outbound.ParseURL(text)
		plain := outbound.CheckPlainURL(text)
		if !errors.Is(err, c.want) || (plain == nil) != (c.plain == "") || plain != nil && !strings.HasPrefix(plain.Error(), c.plain) {
			t.Errorf("%s: %v, and where everybody sees it %v", text, err, plain)
		}
		if shown := fmt.Sprint(err, plain); strings.Contains(shown, "canary") {
			t.Errorf("shows a credential: %s", shown)
		}
	}
}

// A secret that stands where a text is cut must not be shown in part.
func TestSecretsAreTakenOutBeforeATextIsCut(t *testing.T) {
	const canary = "c4nary-c4nary-c4nary"
	t.Setenv("OUTBOUND_TEST_SECRET", canary)
	var known secret.Redactor
	if _, err := known.Read(secret.Value{Env: "OUTBOUND_TEST_SECRET"}); err != nil {
		t.Fatal(err)
	}
	for before := range 60 {
		got := outbound.Excerpt(&known, strings.Repeat("x", before)+canary+strings.Repeat("y", 60), 40)
		if strings.Contains(got, "c4") || len(got) > 40+len("…") {
			t.Errorf("%q", got)
		}
	}
	// However long an answer is, only its beginning is looked at.
	blank := strings.Repeat(" ", 1<<20)
	for text, want := range map[string]string{blank + canary: "…", canary + blank: secret.Hidden + "…"} {
		if got := outbound.Excerpt(&known, text, 40); got != want {
			t.Errorf("%.80q, want %q", got, want)
		}
	}
	for text, want := range map[string]string{"a\n\tb\x00c": "a b c", "ü": "ü", "a\xffb": "a�b", "  ": ""} {
		if got := outbound.Excerpt(nil, text, 40); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := outbound.Excerpt(nil, "üü", 3); got != "ü…" {
		t.Errorf("%q", got)
	}
}

func TestSecretsInHeaders(t *testing.T) {
	header := http.Header{}
	var known secret.Redactor
	for value, want := range map[string]error{"token": nil, "two\nlines": outbound.ErrHeaderValue} {
		t.Setenv("OUTBOUND_TEST_SECRET", value)
		err := outbound.SetSecret(header, "Authorization", "Bearer ", secret.Value{Env: "OUTBOUND_TEST_SECRET"}, &known)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if header.Get("Authorization") != "Bearer token" || known.Redact("token") != secret.Hidden {
		t.Errorf("%v", header)
	}
	for name, own := range map[string]bool{"webhook-id": true, "HOST": true, "X-Token": false} {
		if outbound.IsOwnHeader(name) != own || !outbound.IsHeaderName(name) {
			t.Error(name)
		}
	}
	if outbound.IsHeaderName("a b") {
		t.Error("a header's name has a blank")
	}
}
