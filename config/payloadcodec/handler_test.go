package payloadcodec

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

func TestWhomACodecServerAnswers(t *testing.T) {
	c, data := open(t, write(t, "", "a "+newKey(t)))
	encrypted, err := data.ToPayloads(secret)
	if err != nil {
		t.Fatal(err)
	}
	body, err := protojson.Marshal(encrypted)
	if err != nil {
		t.Fatal(err)
	}
	const ui = "http://localhost:8233"
	unguarded, guarded := HandlerOptions{Origins: []string{ui}}, HandlerOptions{Origins: []string{ui}, Token: fixedToken("s3cr3t")}
	for name, one := range map[string]struct {
		options       HandlerOptions
		method        string
		origin, token string
		host          string
		body          []byte
		want          int
	}{
		"the UI":                      {options: unguarded, origin: ui, want: 200},
		"the UI asks whether it may":  {options: guarded, origin: ui, method: http.MethodOptions, want: 204},
		"another page":                {options: unguarded, origin: "http://evil.example", want: 403},
		"another page asks":           {options: unguarded, origin: "http://evil.example", method: http.MethodOptions, want: 403},
		"a command line":              {options: unguarded, want: 200},
		"a name that leads here":      {options: unguarded, host: "evil.example:8089", want: 403},
		"the right token":             {options: guarded, token: "Bearer s3cr3t", host: "codec.example", want: 200},
		"no token":                    {options: guarded, want: 401},
		"a wrong token":               {options: guarded, token: "Bearer s3cr3", want: 401},
		"a token of another scheme":   {options: guarded, token: "Basic s3cr3t", want: 401},
		"more than it reads":          {options: unguarded, body: bytes.Repeat([]byte(" "), MaxBody+1), want: 400},
		"what is no list of payloads": {options: unguarded, body: []byte("kernel"), want: 400},
	} {
		t.Run(name, func(t *testing.T) {
			if one.method == "" {
				one.method = http.MethodPost
			}
			if one.body == nil {
				one.body = body
			}
			r := httptest.NewRequestWithContext(t.Context(), one.method, "http://127.0.0.1:8089/decode", bytes.NewReader(one.body))
			if one.host != "" {
				r.Host = one.host
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Origin", one.origin)
			r.Header.Set("Authorization", one.token)
			w := httptest.NewRecorder()
			Handler(c, one.options).ServeHTTP(w, r)
			if w.Code != one.want {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if allowed := w.Header().Get("Access-Control-Allow-Origin"); (allowed == ui) != (one.origin == ui) {
				t.Errorf("allows %q", allowed)
			}
			if allowed := w.Header().Get("Access-Control-Allow-Headers"); one.want == http.StatusNoContent && !strings.Contains(allowed, "Authorization-Extras") {
				t.Errorf("allows the headers %q, and the UI sends an ID token too", allowed)
			}
			if one.want != http.StatusOK {
				return
			}
			var got commonpb.Payloads
			if err := protojson.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Payloads) != 1 || !strings.Contains(string(got.Payloads[0].Data), secret) {
				t.Errorf("%s, %v", w.Body, err)
			}
		})
	}
}

type fixedToken string

func (t fixedToken) Get() string { return string(t) }
