package inbound_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"drydock.dev/drydock/inbound"
)

// request is what a client says. All go over a real connection to 127.0.0.1.
type request struct {
	method, host, body string
	header             map[string]string
}

// send sends a request and reads the whole answer: its status and its header.
func send(t *testing.T, server *httptest.Server, r request) (int, http.Header) {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodGet
	}
	asked, err := http.NewRequestWithContext(t.Context(), r.method, server.URL+"/x", strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	asked.Host = r.host
	for name, value := range r.header {
		asked.Header.Set(name, value)
	}
	response, err := server.Client().Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header
}

var answers = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

func header(name, value string) map[string]string { return map[string]string{name: value} }

func TestAPageDoesNotReachALoopbackServer(t *testing.T) {
	server := httptest.NewServer(inbound.Loopback(answers))
	defer server.Close()
	for name, one := range map[string]struct {
		request
		want int
	}{
		"a command line":             {request{}, 200},
		"localhost":                  {request{host: "LOCALHOST:8233"}, 200},
		"IPv6":                       {request{host: "[::1]:8233"}, 200},
		"a name that leads here":     {request{host: "evil.example:8233"}, 403},
		"a name that begins like it": {request{host: "localhost.evil.example"}, 403},
		"a name that ends like it":   {request{host: "evil-localhost"}, 403},
		"an address of the network":  {request{host: "10.0.0.1:8233"}, 403},
		"any address":                {request{host: "0.0.0.0:8233"}, 403},
		"its own page":               {request{method: "POST", body: "{}", header: map[string]string{"Origin": "http://localhost:8233", "Content-Type": "application/json"}}, 200},
		"another page":               {request{method: "POST", body: "{}", header: map[string]string{"Origin": "http://evil.example", "Content-Type": "application/json"}}, 403},
		"a page that hides":          {request{header: header("Origin", "null")}, 403},
		"a page's image":             {request{header: header("Sec-Fetch-Site", "cross-site")}, 403},
		"a link":                     {request{header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}}, 200},
		"JSON":                       {request{method: "POST", body: "{}", header: header("Content-Type", "application/json; charset=utf-8")}, 200},
		"text":                       {request{method: "POST", body: "{}", header: header("Content-Type", "text/plain;charset=UTF-8")}, 415},
		"a form":                     {request{method: "POST", body: "a=b", header: header("Content-Type", "application/x-www-form-urlencoded")}, 415},
		"a form with files":          {request{method: "POST", body: "a=b", header: header("Content-Type", "multipart/form-data; boundary=x")}, 415},
		"a body without a type":      {request{method: "POST", body: "{}"}, 415},
		"PUT of curl":                {request{method: "PUT", body: "debug", header: header("Content-Type", "application/x-www-form-urlencoded")}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			status, header := send(t, server, one.request)
			if status != one.want {
				t.Errorf("%d, want %d", status, one.want)
			}
			if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("its policy is %q", policy)
			}
		})
	}
}

func TestAServerForProbesIsReadOnly(t *testing.T) {
	server := httptest.NewServer(inbound.ReadOnly(answers))
	defer server.Close()
	for name, one := range map[string]struct {
		request
		want int
	}{
		"a probe":      {request{host: "10.244.0.7:8080"}, 200},
		"Prometheus":   {request{host: "drydock.drydock.svc:8080"}, 200},
		"HEAD":         {request{method: "HEAD"}, 200},
		"POST":         {request{method: "POST", body: "{}"}, 405},
		"PUT":          {request{method: "PUT", body: "debug"}, 405},
		"a script":     {request{header: header("Origin", "http://evil.example")}, 403},
		"a page's img": {request{header: header("Sec-Fetch-Site", "cross-site")}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _ := send(t, server, one.request); status != one.want {
				t.Errorf("%d, want %d", status, one.want)
			}
		})
	}
}

func TestWhichProtectionAnAddressGets(t *testing.T) {
	for address, want := range map[string]int{"127.0.0.1:0": 403, "localhost:8080": 403, "[::1]:8080": 403, ":8080": 200, "0.0.0.0:8080": 200, "10.0.0.1:8080": 200} {
		server := httptest.NewServer(inbound.At(address, answers))
		if got, _ := send(t, server, request{host: "evil.example"}); got != want {
			t.Errorf("%s: %d, want %d", address, got, want)
		}
		server.Close()
	}
}

func TestNoOtherPageReachesAUserInterface(t *testing.T) {
	server := httptest.NewServer(inbound.Pages(answers, "ui.example", "10.0.0.7"))
	defer server.Close()
	typed := func(kind string, more ...string) map[string]string {
		h := header("Content-Type", kind)
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for name, one := range map[string]struct {
		request
		want int
	}{
		"a person":                   {request{}, 200},
		"localhost":                  {request{host: "localhost:8233"}, 200},
		"IPv6":                       {request{host: "[::1]:8233"}, 200},
		"a configured name":          {request{host: "UI.example:8233"}, 200},
		"a configured address":       {request{host: "10.0.0.7:8233"}, 200},
		"a name that leads here":     {request{host: "evil.example:8233"}, 403},
		"a name below it":            {request{host: "evil.ui.example"}, 403},
		"any address":                {request{host: "0.0.0.0:8233"}, 403},
		"its own page":               {request{method: "POST", host: "localhost:8233", body: "{}", header: typed("application/json", "Origin", "http://localhost:8233")}, 200},
		"its own page, as text":      {request{method: "POST", host: "localhost:8233", body: "{}", header: typed("text/plain;charset=UTF-8", "Origin", "http://localhost:8233", "X-CSRF-TOKEN", "x")}, 200},
		"another page":               {request{method: "POST", body: "{}", header: typed("application/json", "Origin", "https://evil.example")}, 403},
		"a page of another port":     {request{method: "POST", host: "localhost:8233", body: "{}", header: typed("application/json", "Origin", "http://localhost:3000")}, 403},
		"a page that hides":          {request{header: header("Origin", "null")}, 403},
		"a page of a name like it":   {request{host: "evil.example", header: header("Origin", "http://evil.example")}, 403},
		"a page's image":             {request{header: header("Sec-Fetch-Site", "same-site")}, 403},
		"a link":                     {request{header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}}, 200},
		"gRPC-Web":                   {request{method: "POST", body: "{}", header: typed("application/grpc-web+proto")}, 200},
		"text":                       {request{method: "POST", body: "{}", header: typed("text/plain")}, 415},
		"a form":                     {request{method: "POST", body: "a=b", header: typed("application/x-www-form-urlencoded")}, 415},
		"a form with files":          {request{method: "POST", body: "a=b", header: typed("multipart/form-data; boundary=x")}, 415},
		"a body without a type":      {request{method: "POST", body: "{}"}, 415},
		"neither a body nor a type":  {request{method: "POST"}, 415},
		"PUT of text":                {request{method: "PUT", body: "{}", header: typed("text/plain")}, 415},
		"a type that begins like it": {request{method: "POST", body: "{}", header: typed("application/json-patch+json")}, 415},
	} {
		t.Run(name, func(t *testing.T) {
			status, header := send(t, server, one.request)
			if status != one.want {
				t.Errorf("%d, want %d", status, one.want)
			}
			if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'self'") {
				t.Errorf("its policy is %q", policy)
			}
		})
	}
}

// Temporal's development server is a module of its own, which would depend on all that this one does if it imported the package.
func TestTheDevelopmentServerHasTheSameProtection(t *testing.T) {
	own, err := os.ReadFile("inbound.go")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile("../deploy/devtemporal/inbound/inbound.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(own, copied) {
		t.Error("deploy/devtemporal/inbound/inbound.go differs: copy inbound/inbound.go there")
	}
}
