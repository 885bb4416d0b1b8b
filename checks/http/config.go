// Package http asks and calls by HTTP.
package http

import (
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of checks and hooks that are requests.
var Kind = checks.Kind{Name: "http", Config: &Config{}}

var (
	_ checks.Checkable = &Config{}
	_ checks.Callable  = &Config{}
)

// Config is an HTTP request. `url`, `headers` and `body` are [templates](#checks).
type Config struct {
	// URL is a template of the address, whose values are percent-encoded. Its scheme is fixed, and its host may depend on `.Cluster`, `.Node`
	// and `.InternalIP` only. Redirects are not followed. If the node decides the host, see [URLs of nodes](#urls-of-nodes).
	URL string `json:"url" jsonschema:"required"`
	// Method is the request's: `GET` of a check and `POST` of a hook or work, where another one is not given.
	Method string `json:"method,omitempty" jsonschema:"enum=GET,enum=HEAD,enum=POST,enum=PUT,enum=PATCH,enum=DELETE"`
	// Headers are templates of headers, without credentials: those are in `secretHeaders` and `bearerToken`.
	Headers map[string]string `json:"headers,omitempty"`
	// SecretHeaders are headers whose values are [secrets](#secrets). They are sent as they are.
	SecretHeaders map[string]secret.Value `json:"secretHeaders,omitempty"`
	// BearerToken is the token of an Authorization header, a [secret](#secrets).
	BearerToken secret.Value `json:"bearerToken,omitzero"`
	// Body is a template of the body. Its values are escaped for a JSON string, or as its Content-Type has it: percent-encoded for a form, as
	// they are for anything else.
	Body string `json:"body,omitempty"`
	// ExpectStatus are the statuses that are well; if absent, 200 to 299.
	ExpectStatus []int `json:"expectStatus,omitempty"`
	// ExpectBody is a regular expression that the first MiB of the answer has to match.
	ExpectBody string `json:"expectBody,omitempty"`
	// Capture is a regular expression with one group over the answer to a hook: at most 256 bytes, which the templates of its closing have as
	// `.Captured`, and a Job as `DRYDOCK_CAPTURED`. It stays in the maintenance's history.
	Capture string `json:"capture,omitempty"`
	// Timeout is that of one request.
	Timeout period.Duration `json:"timeout,omitzero" jsonschema:"default=10s"`
	// CAFile is a file with [authorities](#authorities) that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
	// AllowPlaintext lets secrets go by http.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// Validate adds what is wrong.
func (c *Config) Validate(at checks.Place, p *sections.Problems) {
	c.compile(at, "", p)
	switch {
	case c.Capture == "":
	case at.Role == checks.RoleCheck:
		p.Add(at.Field+".capture", "has no meaning in a check: only a hook's closing is given what was captured")
	case at.Role == checks.RoleCleanup, at.Role == checks.RoleWork:
		p.Add(at.Field+".capture", "has no meaning in a %s: nothing is called after it", at.Role)
	}
}

// Checker makes the request ready.
func (c *Config) Checker(at checks.Place, e checks.Environment) (checks.Checker, error) {
	return c.ready(at, e)
}

// Caller makes the request ready.
func (c *Config) Caller(at checks.Place, e checks.Environment) (checks.Caller, error) {
	return c.ready(at, e)
}

func (c *Config) ready(at checks.Place, e checks.Environment) (*request, error) {
	var p sections.Problems
	r := c.compile(at, e.Agent, &p)
	r.nodes = e.NodeAddresses
	return r, p.Join()
}

// request is an HTTP request with its templates parsed.
type request struct {
	config     Config
	agent      string
	nodes      outbound.NodeAddresses
	field      string
	method     string
	url        *template.Template
	body       *template.Template
	headers    map[string]*template.Template
	expectBody *regexp.Regexp
	capture    *regexp.Regexp
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

func (c *Config) compile(at checks.Place, agent string, p *sections.Problems) *request {
	field := at.Field
	r := &request{config: *c, agent: agent, field: field, method: c.Method, headers: map[string]*template.Template{}}
	switch {
	case r.method != "":
	case at.Role == checks.RoleCheck:
		r.method = "GET"
	default:
		r.method = "POST"
	}
	if !slices.Contains(methods, r.method) {
		p.Add(field+".method", "%q is not one of %s", r.method, strings.Join(methods, ", "))
	}
	var err error
	if r.url, err = checks.ParseTemplate(c.URL); err == nil {
		var u *url.URL
		if u, _, err = renderURL(r.url, checks.Sample); err == nil {
			err = outbound.CheckPlaintext(u, !c.BearerToken.IsZero() || len(c.SecretHeaders) > 0, c.AllowPlaintext)
		}
	}
	p.Check(field+".url", err)
	r.body, err = checks.ParseTemplate(c.Body)
	p.Check(field+".body", err)
	c.compileHeaders(field, r, p)
	for i, status := range c.ExpectStatus {
		if status < 100 || status > 599 {
			p.Add(fmt.Sprintf("%s.expectStatus[%d]", field, i), "%d is not a status: want 100 to 599", status)
		}
	}
	r.expectBody, err = regexp.Compile(c.ExpectBody)
	p.Check(field+".expectBody", err)
	if c.Capture != "" {
		if r.capture, err = regexp.Compile(c.Capture); err != nil {
			p.Check(field+".capture", err)
		} else if r.capture.NumSubexp() != 1 {
			p.Add(field+".capture", "has %d groups: want one, around what is captured", r.capture.NumSubexp())
		}
	}
	return r
}

// credentials are headers whose value is a secret.
var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie"}

func (c *Config) compileHeaders(field string, r *request, p *sections.Problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		at := field + ".headers." + name
		if slices.Contains(credentials, textproto.CanonicalMIMEHeaderKey(name)) {
			p.Add(at, "is a credential: put it in a file or the environment, and name it in bearerToken or secretHeaders")
		}
		if !outbound.IsHeaderName(name) {
			p.Add(at, "is not the name of a header")
		}
		t, err := checks.ParseTemplate(c.Headers[name])
		p.Check(at, err)
		r.headers[name] = t
	}
	for _, name := range slices.Sorted(maps.Keys(c.SecretHeaders)) {
		at := field + ".secretHeaders." + name
		if !outbound.IsHeaderName(name) {
			p.Add(at, "is not the name of a header")
		}
		p.Check(at, c.SecretHeaders[name].Validate())
	}
	if !c.BearerToken.IsZero() {
		p.Check(field+".bearerToken", c.BearerToken.Validate())
	}
}
