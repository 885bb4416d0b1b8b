package payloadcodec

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/inbound"
)

// MaxBody is how much of a request a codec server reads, in bytes: a page of a history is smaller.
const MaxBody = 16 << 20

// uiHeaders are those that Temporal's UI sends; a browser asks whether it may before it sends any of them.
const uiHeaders = "Authorization, Authorization-Extras, Content-Type, X-Namespace"

// Token is a bearer token, which may change.
type Token interface{ Get() string }

// HandlerOptions say whom a codec server answers.
type HandlerOptions struct {
	// Origins are those of the web pages that may ask, such as http://localhost:8233.
	Origins []string
	// Token is what each request must bring as a bearer token; nil asks for none, and then only this machine is answered.
	Token Token
}

// Handler is the codec server that Temporal's UI and command line ask: POST to .../encode and .../decode.
func Handler(c *Codec, o HandlerOptions) http.Handler {
	codec := converter.NewPayloadCodecHTTPHandler(c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" {
			w.Header().Add("Vary", "Origin")
			if !slices.Contains(o.Origins, origin) {
				http.Error(w, "pages of this origin are not answered: name it with --origin", http.StatusForbidden)
				return
			}
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
			h.Set("Access-Control-Allow-Headers", uiHeaders)
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		switch {
		case r.Method == http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
			return
		case o.Token == nil && !inbound.IsLoopback(r.Host):
			// A page whose name was made to lead here says that name.
			http.Error(w, "only the names of this machine are answered without a token", http.StatusForbidden)
			return
		case o.Token != nil && !sameToken(r.Header.Get("Authorization"), o.Token.Get()):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		codec.ServeHTTP(w, r)
	})
}

// sameToken compares in constant time, so that nobody can guess a token bit by bit.
func sameToken(header, token string) bool {
	scheme, given, _ := strings.Cut(header, " ")
	a, b := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
