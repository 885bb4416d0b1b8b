package worker

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAWorkerIsAskedWhetherItIsReady(t *testing.T) {
	var ready atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready.Load() {
			http.Error(w, "Temporal does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(address, ":")

	for _, c := range []struct {
		listen, want string
		ready        bool
	}{
		{listen: address, ready: true},
		{listen: ":" + port, ready: true},
		{listen: "0.0.0.0:" + port, ready: true},
		{listen: address, want: "not ready: Temporal does not answer"},
		{listen: "127.0.0.1:1", want: "connection refused"},
		{listen: "8080", want: "want host:port"},
	} {
		ready.Store(c.ready)
		var out bytes.Buffer
		status := Main(t.Context(), []string{"--ready", "--listen", c.listen}, &out)
		if (status == 0) != (c.want == "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d, %q: want %q", c.listen, status, &out, c.want)
		}
	}
}
