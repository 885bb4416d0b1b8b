package codecserver_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drydock/starter"
	"drydock/starter/exit"
	"drydock/starter/invocation"
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

func TestItServesUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, written := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- starter.Run(ctx, invocation.Process{
			Args:  []string{"drydock", "codec-server", "--listen", "127.0.0.1:0", "--origin", "http://localhost:8233"},
			Stdin: strings.NewReader(""), Stdout: written, Stderr: io.Discard, Environ: []string{"DRYDOCK_CODEC_KEYS_FILE=" + keys(t)},
		})
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(line), "is ")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/decode", strings.NewReader(`{"payloads":[{"data":"YQ=="}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), "YQ==") {
		t.Errorf("%s %s, %v", answer.Status, body, err)
	}
	stop()
	if code := <-ended; code != exit.OK {
		t.Errorf("exit code %d", code)
	}
}
