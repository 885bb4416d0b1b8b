package prometheus_test

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	"drydock.dev/drydock/checks/prometheus"
	"drydock.dev/drydock/secret"
)

func vector(values ...string) string {
	var samples []string
	for i, v := range values {
		samples = append(samples, `{"metric":{"__name__":"up","gpu":"`+string(rune('a'+i))+`"},"value":[1700000000,"`+v+`"]}`)
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

func queryCheck(url, query, expect string) checks.Config {
	return checks.Config{
		Prometheus: checks.Section{Shared: &prometheus.Server{URL: url}},
		Checks:     map[string]checks.Check{"gpu": checkstest.Check("prometheus", &prometheus.Config{Query: query, Expect: expect})},
	}
}

func TestPrometheusVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		status         int
		answer, expect string
		ok             bool
		message        string
	}{
		"empty and is":           {200, vector(), "empty", true, "returned nothing"},
		"empty and is not":       {200, vector("1", "2", "3", "4"), "empty", false, `returned up{gpu="a"} = 1, up{gpu="b"} = 2, up{gpu="c"} = 3 and 1 more, want nothing`},
		"non-empty and is":       {200, vector("0"), "nonEmpty", true, `up{gpu="a"} = 0`},
		"non-empty and is not":   {200, vector(), "nonEmpty", false, "returned nothing, want something"},
		"all are":                {200, vector("1", "2"), ">= 1", true, ""},
		"one is not":             {200, vector("1", "0"), ">= 1", false, `returned up{gpu="b"} = 0, want all >= 1`},
		"none to compare":        {200, vector(), ">= 1", false, "returned nothing, want all >= 1"},
		"not a number":           {200, vector("NaN"), "!= 1", false, "NaN"},
		"infinite":               {200, vector("+Inf"), "> 1e9", true, ""},
		"equal":                  {200, vector("2"), "==2", true, ""},
		"smaller":                {200, vector("2"), "< 2", false, ""},
		"scalar":                 {200, `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"3"]}}`, "<= 3", true, "returned 3"},
		"warns":                  {200, strings.Replace(vector(), `"data"`, `"warnings":["store is away"],"data"`, 1), "empty", false, "warns of its answer: store is away"},
		"server error":           {500, "boom", "empty", false, "did not answer: server_error"},
		"not found":              {404, "<html>", "empty", false, "did not answer: client_error"},
		"redirect":               {302, "", "empty", false, "did not answer: "},
		"answer is no JSON":      {200, "<html>", "empty", false, "did not answer: "},
		"answer is cut":          {200, strings.Repeat(" ", 9<<20), "empty", false, "too large"},
		"execution is timed out": {503, `{"status":"error","errorType":"timeout","error":"too slow"}`, "empty", false, "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkstest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				checkstest.Answering(c.status, c.answer)(w, r)
			})
			got, err := checkstest.Runner(t, queryCheck(s.URL, "up", c.expect)).Check(t.Context(), "gpu", checkstest.Subject, "key")
			if err != nil || got.OK != c.ok || !strings.Contains(got.Message, c.message) {
				t.Fatalf("got %+v, %v; want OK %v and %q", got, err, c.ok, c.message)
			}
		})
	}
}

func TestPrometheusMisconfigured(t *testing.T) {
	for name, c := range map[string]struct {
		status       int
		answer, want string
	}{
		"bad query": {400, `{"status":"error","errorType":"bad_data","error":"parse error"}`, "checks.gpu.prometheus: query: Prometheus refuses it: bad_data: parse error"},
		"matrix":    {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "checks.gpu.prometheus: query: gives a matrix"},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkstest.Serve(t, checkstest.Answering(c.status, c.answer))
			_, err := checkstest.Runner(t, queryCheck(s.URL, "up", "empty")).Check(t.Context(), "gpu", checkstest.Subject, "key")
			if !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestQueriesAreEscapedAndAuthorized(t *testing.T) {
	const token = "canary-token"
	var query, authorization, agent, path string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, authorization, agent, path = r.FormValue("query"), r.Header.Get("Authorization"), r.UserAgent(), r.URL.Path
		if strings.Contains(query, "fail") {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
			return
		}
		_, _ = io.WriteString(w, vector("1"))
	}))
	t.Cleanup(s.Close)
	c := queryCheck(s.URL+"/base/", `up{a="{{.Reason}}",b='{{.Reason}}'}`, ">= 1")
	server := c.Prometheus.Shared.(*prometheus.Server)
	server.BearerToken = secret.Value{File: checkstest.File(t, token+"\n")}
	server.CAFile = checkstest.File(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	r := checkstest.Runner(t, c)
	hostile := checkstest.Subject
	hostile.Reason = "\"} or vector(1) #'`\\\né"
	if got, err := r.Check(t.Context(), "gpu", hostile, ""); err != nil || !got.OK {
		t.Fatalf("got %+v, %v", got, err)
	}
	if want := `\x22} or vector(1) #\x27\x60\x5c\x0aé`; query != `up{a="`+want+`",b='`+want+`'}` {
		t.Errorf("got %s", query)
	}
	if authorization != "Bearer "+token || agent != "drydock/1.2.3" || path != "/base/api/v1/query" {
		t.Errorf("got %q, %q, %q", authorization, agent, path)
	}
	hostile.Reason = "fail"
	got, err := r.Check(t.Context(), "gpu", hostile, "")
	if err != nil || got.OK || strings.Contains(got.Message, token) {
		t.Fatalf("got %+v, %v", got, err)
	}
	s.Close()
	if got, err = r.Check(t.Context(), "gpu", hostile, ""); err != nil || got.OK || strings.Contains(got.Message, token) {
		t.Fatalf("got %+v, %v", got, err)
	}
}
