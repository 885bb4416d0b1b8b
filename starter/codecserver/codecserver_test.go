package codecserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"drydock.dev/drydock/config/payloadcodec"
	"drydock.dev/drydock/deploy/devstack/pkitest"
	"drydock.dev/drydock/starter"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func keys(t *testing.T) string {
	return write(t, "keys", "a "+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n")
}

func TestWrongFlagsAreRefused(t *testing.T) {
	good := keys(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no keys":              {nil, "--keys-file is wanted"},
		"keys that are none":   {[]string{"--keys-file", write(t, "none", "a b")}, "line 1"},
		"open to all":          {[]string{"--keys-file", good, "--listen", ":0"}, "--bearer-token-file"},
		"an empty token":       {[]string{"--keys-file", good, "--bearer-token-file", write(t, "token", "\n")}, "is empty"},
		"half of TLS":          {[]string{"--keys-file", good, "--tls-cert", good}, "--tls-key"},
		"an origin with paths": {[]string{"--keys-file", good, "--origin", "http://localhost:8233/"}, "--origin"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			code := starter.Run(t.Context(), invocation.Process{
				Args: append([]string{"drydock", "codec-server"}, c.args...), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &said,
			})
			if code != exit.Usage || !strings.Contains(said.String(), c.want) {
				t.Errorf("%d %s", code, &said)
			}
		})
	}
}

// serve runs the command until it is stopped, and returns its URL.
func serve(t *testing.T, environ []string, args ...string) (url string, stop func() (code int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, written := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- starter.Run(ctx, invocation.Process{
			Args:  append([]string{"drydock", "codec-server", "--listen", "127.0.0.1:0"}, args...),
			Stdin: strings.NewReader(""), Stdout: written, Stderr: io.Discard, Environ: environ,
		})
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ = strings.Cut(strings.TrimSpace(line), "is ")
	return url, func() int {
		cancel()
		return <-ended
	}
}

// decode asks for a payload.
func decode(t *testing.T, by *http.Client, url, token, payload string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/decode", strings.NewReader(`{"payloads":[`+payload+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := by.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(read), err
}

func TestItServesUntilItIsStopped(t *testing.T) {
	url, stop := serve(t, []string{"DRYDOCK_CODEC_KEYS_FILE=" + keys(t)}, "--origin", "http://localhost:8233")
	if status, body, err := decode(t, http.DefaultClient, url, "", `{"data":"YQ=="}`); err != nil || status != http.StatusOK || !strings.Contains(body, "YQ==") {
		t.Errorf("%d %s, %v", status, body, err)
	}
	if code := stop(); code != exit.OK {
		t.Errorf("exit code %d", code)
	}
}

// TestFilesAreRenewedWhileItServes replaces all that it reads: each is in force with the next request, and the old one no more.
func TestFilesAreRenewedWhileItServes(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	set := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	encrypted := func(key string) string {
		set("others", key)
		codec, err := payloadcodec.Open(path("others"), nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := codec.Encode([]*commonpb.Payload{{Data: []byte("kernel 6.12")}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := protojson.Marshal(all[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	renew := func(n byte) (by *http.Client, payload string) {
		authority := pkitest.NewAuthority(t)
		cert, key := authority.Issue(t, time.Now().Add(time.Hour))
		set("tls.crt", cert)
		set("tls.key", key)
		set("token", fmt.Sprintf("token-%d\n", n))
		codecKey := fmt.Sprintf("key-%d %s\n", n, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32)))
		set("keys", codecKey)
		trusts := x509.NewCertPool()
		trusts.AddCert(authority.Cert)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusts}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}, encrypted(codecKey)
	}
	before, old := renew(1)
	url, stop := serve(t, nil, "--keys-file", path("keys"), "--bearer-token-file", path("token"), "--tls-cert", path("tls.crt"), "--tls-key", path("tls.key"))
	defer stop()
	asks := func(by *http.Client, token, payload string, want int) {
		t.Helper()
		status, body, err := decode(t, by, url, token, payload)
		if err != nil || status != want || (want == http.StatusOK) != strings.Contains(body, base64.StdEncoding.EncodeToString([]byte("kernel 6.12"))) {
			t.Errorf("%d %s, %v; want %d", status, body, err, want)
		}
	}
	asks(before, "token-1", old, http.StatusOK)
	after, payload := renew(2)
	asks(after, "token-2", payload, http.StatusOK)
	asks(after, "token-1", payload, http.StatusUnauthorized)
	asks(after, "token-2", old, http.StatusBadRequest) // with a key that is not there any more
	before.CloseIdleConnections()
	if _, _, err := decode(t, before, url, "token-2", payload); err == nil {
		t.Error("it shows the old certificate")
	}
	// What is being replaced is not there for a moment.
	for _, name := range []string{"tls.key", "token", "keys"} {
		set(name, "")
	}
	after.CloseIdleConnections()
	asks(after, "token-2", payload, http.StatusOK)
}
