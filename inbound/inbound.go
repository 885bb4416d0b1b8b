// Package inbound protects HTTP servers of this machine from web pages: a page that somebody opens sends requests from his machine, and
// one whose name is made to lead there (DNS rebinding) reads the answers too.
package inbound

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Loopback answers only requests that name this machine by a loopback name or address. The Host header is what tells them apart: a
// browser sends the name that its user sees, whatever address that leads to.
func Loopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		switch {
		case !IsLoopback(r.Host):
			http.Error(w, "only the names of this machine are answered here, such as localhost or 127.0.0.1", http.StatusForbidden)
		case !isLocalOrigin(r.Header):
			http.Error(w, "pages of other origins are not answered here", http.StatusForbidden)
		case isSimple(r):
			http.Error(w, "text and forms are not taken by POST: any page may send these", http.StatusUnsupportedMediaType)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Pages protects a user interface: it answers requests that name this machine by a loopback name or address, or by one of names, and that
// no page sends but the interface's own. What changes something is JSON or gRPC, or carries the header ScriptHeader.
func Pages(next http.Handler, names ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protectPages(w.Header())
		switch {
		case !IsLoopback(r.Host) && !isOneOf(r.Host, names):
			http.Error(w, "this name is not answered here, only those of this machine, such as localhost or 127.0.0.1, and those that were configured", http.StatusForbidden)
		case !isOwnOrigin(r):
			http.Error(w, "pages of other origins are not answered here", http.StatusForbidden)
		case isChange(r.Method) && r.Header.Get(ScriptHeader) == "" && !isDeclared(r.Header):
			http.Error(w, "send application/json: any page may send text and forms", http.StatusUnsupportedMediaType)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ScriptHeader is the header that Temporal's UI puts on what changes something, as text. A browser sends it for a page of another origin only
// where the server said before that the page may.
const ScriptHeader = "X-Csrf-Token"

// GetOnly answers GET and HEAD alone.
func GetOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			protect(w.Header())
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ReadOnly answers GET and HEAD alone, and no request that a browser sends for a page of another site. It asks nothing of the Host header:
// probes come by a pod's address, Prometheus by the name of a Service.
func ReadOnly(next http.Handler) http.Handler {
	return GetOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		if r.Header.Get("Origin") != "" || isForeign(r.Header) {
			http.Error(w, "pages are not answered here", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// At is the protection for a server that listens at an address: Loopback where only this machine reaches it, else ReadOnly.
func At(address string, next http.Handler) http.Handler {
	if IsLoopback(address) {
		return Loopback(next)
	}
	return ReadOnly(next)
}

// IsLoopback reports whether a host, with its port or without, is this machine's own name for itself.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// isLocalOrigin reports whether a request comes from no page, or from a page of this machine. An origin of "null" is a page's that hides
// where it is from.
func isLocalOrigin(h http.Header) bool {
	origins := h.Values("Origin")
	if len(origins) == 0 {
		return !isForeign(h)
	}
	if len(origins) > 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && IsLoopback(u.Host)
}

// isForeign reports whether a browser says that a page of another site sends the request. Following a link to read is none.
func isForeign(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && h.Get("Sec-Fetch-Mode") != "navigate"
}

// isOwnOrigin reports whether a request comes from no page, or from a page of the very server that it goes to.
func isOwnOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return !isForeign(r.Header)
	}
	if len(origins) > 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

// isOneOf reports whether a host, with its port or without, has one of the names.
func isOneOf(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, strings.Trim(host, "[]")) })
}

func isChange(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// isDeclared reports whether the body has a type that a browser sends for a page of another origin only after it asked the server.
func isDeclared(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/grpc"))
}

// isSimple reports whether a browser sends the request for any page without asking the server first.
func isSimple(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "text/plain", "application/x-www-form-urlencoded", "multipart/form-data":
		return true
	}
	// Without a type a server guesses one.
	return err != nil && r.ContentLength != 0
}

// protect keeps answers out of other sites' frames, and from being read as what they are not.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// protectPages keeps pages out of other sites' frames, and their forms and plug-ins from leading elsewhere. Which scripts run is what the
// pages themselves say.
func protectPages(h http.Header) {
	h.Set("Content-Security-Policy", "base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "SAMEORIGIN")
}
