package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"drydock.dev/drydock/outbound"
)

// Page is the web page that shows what goes on in the cluster. It changes nothing.
type Page struct {
	// Listen is its address, as `127.0.0.1:8088`; if absent, there is no page. Any but a loopback address needs `authentication`.
	Listen string `json:"listen,omitempty"`
	// Authentication is who may read it: with `none` anyone who reaches the address, with `token` accounts that may `get` the nonResourceURL
	// `/drydock`, with `proxy` whom a proxy names.
	Authentication string `json:"authentication,omitempty" jsonschema:"enum=none,enum=token,enum=proxy,default=none"`
	// Header is where the proxy names the reader.
	Header string `json:"header,omitempty"`
	// Names are the hosts that browsers may ask, beside `localhost`. There may be 10.
	Names []string `json:"names,omitempty"`
	// TemporalUI is the URL of Temporal's web interface, for links.
	TemporalUI string `json:"temporalUI,omitempty"`
}

// AuthenticationProxy is the way of readers whom a proxy names.
const AuthenticationProxy = "proxy"

const maxPageNames = 10

func (p Page) validate() (wrong []error) {
	problem := func(field, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("page."+field+": "+format, args...))
	}
	host, err := hostOf(p.Listen)
	switch {
	case p.Listen == "" && (p.Authentication != "" || p.Header != "" || len(p.Names) > 0 || p.TemporalUI != ""):
		problem("listen", "is missing: set the address that serves the page, as 127.0.0.1:8088, or remove page")
	case p.Listen != "" && err != nil:
		problem("listen", "%q: want host:port with a port up to 65535", p.Listen)
	case p.Listen != "" && !outbound.IsLoopback(host) && (p.Authentication == "" || p.Authentication == AuthenticationNone):
		problem("listen", "%q can be reached from other machines: set page.authentication to token or proxy, or listen on a loopback address", p.Listen)
	}
	if len(p.Names) > maxPageNames {
		problem("names", "%d names: at most %d are taken", len(p.Names), maxPageNames)
	}
	for i, name := range p.Names {
		if !hostName.MatchString(name) {
			problem(fmt.Sprintf("names[%d]", i), "%.253q is not a host name: give the name alone, without a port", name)
		}
	}
	if p.TemporalUI != "" && !isPlainURL(p.TemporalUI) {
		problem("temporalUI", "%.300q is not an http or https URL without a password, a query or a fragment", p.TemporalUI)
	}
	return append(wrong, p.validateAccess()...)
}

func isPlainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

func (p Page) validateAccess() (wrong []error) {
	switch p.Authentication {
	case "", AuthenticationNone, AuthenticationToken, AuthenticationProxy:
	default:
		wrong = append(wrong, fmt.Errorf("page.authentication: %q is not one of %s, %s, %s",
			p.Authentication, AuthenticationNone, AuthenticationToken, AuthenticationProxy))
	}
	switch proxied := p.Authentication == AuthenticationProxy; {
	case proxied && p.Header == "":
		wrong = append(wrong, errors.New("page.header: is missing: name the header in which the proxy names the reader, as X-Forwarded-User"))
	case !proxied && p.Header != "":
		wrong = append(wrong, errors.New("page.header: is for page.authentication: proxy alone: set that, or remove the header"))
	case proxied && !proxyHeader.MatchString(p.Header): // a browser sends others by itself
		wrong = append(wrong, fmt.Errorf("page.header: %.100q: want one that proxies set, which begins with X- or is Remote-User", p.Header))
	}
	return wrong
}

var (
	proxyHeader = regexp.MustCompile(`^(?i:x-[a-z0-9-]{1,100}|remote-user)$`)
	hostName    = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)
)
