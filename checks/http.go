package checks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"golang.org/x/net/http/httpguts"

	"drydock/config/secret"
	"drydock/rules/period"
)

const (
	maxBody     = 1 << 20
	maxExcerpt  = 200
	maxCaptured = 256
)

// request is an HTTP request with its templates parsed.
type request struct {
	config     HTTP
	field      string
	method     string
	url        *template.Template
	body       *template.Template
	headers    map[string]*template.Template
	expectBody *regexp.Regexp
	capture    *regexp.Regexp
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

func (c HTTP) compile(field, method string, p *problems) *request {
	r := &request{config: c, field: field, method: c.Method, headers: map[string]*template.Template{}}
	if r.method == "" {
		r.method = method
	}
	if !slices.Contains(methods, r.method) {
		p.add(field+".method", "%q is not one of %s", r.method, strings.Join(methods, ", "))
	}
	var err error
	if r.url, err = parse(c.URL); err == nil {
		_, err = renderURL(r.url, sample)
	}
	p.check(field+".url", err)
	r.body, err = parse(c.Body)
	p.check(field+".body", err)
	c.compileHeaders(field, r, p)
	for i, status := range c.ExpectStatus {
		if status < 100 || status > 599 {
			p.add(fmt.Sprintf("%s.expectStatus[%d]", field, i), "%d is not a status: want 100 to 599", status)
		}
	}
	r.expectBody, err = regexp.Compile(c.ExpectBody)
	p.check(field+".expectBody", err)
	if c.Capture != "" {
		if r.capture, err = regexp.Compile(c.Capture); err != nil {
			p.check(field+".capture", err)
		} else if r.capture.NumSubexp() != 1 {
			p.add(field+".capture", "has %d groups: want one, around what is captured", r.capture.NumSubexp())
		}
	}
	return r
}

// credentials are headers whose value is a secret.
var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie"}

func (c HTTP) compileHeaders(field string, r *request, p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		at := field + ".headers." + name
		if slices.Contains(credentials, textproto.CanonicalMIMEHeaderKey(name)) {
			p.add(at, "is a credential: put it in a file or the environment, and name it in bearerToken or secretHeaders")
		}
		if !httpguts.ValidHeaderFieldName(name) {
			p.add(at, "is not the name of a header")
		}
		t, err := parse(c.Headers[name])
		p.check(at, err)
		r.headers[name] = t
	}
	for _, name := range slices.Sorted(maps.Keys(c.SecretHeaders)) {
		at := field + ".secretHeaders." + name
		if !httpguts.ValidHeaderFieldName(name) {
			p.add(at, "is not the name of a header")
		}
		p.check(at, c.SecretHeaders[name].Validate())
	}
	if !c.BearerToken.IsZero() {
		p.check(field+".bearerToken", c.BearerToken.Validate())
	}
}

// answer is what a server said.
type answer struct {
	status  string
	code    int
	body    string
	host    string
	secrets secrets
}

// send makes the request once. The error is a *misconfigured one where no request could be made, and anything else where
// no answer came. A key makes repeated requests recognizable to the server.
func (r *request) send(ctx context.Context, agent string, s Subject, key string) (answer, error) {
	var a answer
	req, err := r.build(ctx, s, &a.secrets)
	if err != nil {
		return a, r.misconfigured(err)
	}
	a.host = req.URL.Host
	req.Header.Set("User-Agent", agent)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	client, err := newClient(r.config.CAFile, r.config.Timeout)
	if err != nil {
		return a, r.misconfigured(err)
	}
	response, err := client.Do(req)
	if err != nil {
		return a, a.unreachable(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return a, a.unreachable(ctx, err)
	}
	a.status, a.code, a.body = response.Status, response.StatusCode, string(body)
	return a, nil
}

func (r *request) misconfigured(err error) error { return &misconfigured{field: r.field, err: err} }

func (r *request) build(ctx context.Context, s Subject, known *secrets) (*http.Request, error) {
	u, err := renderURL(r.url, s)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	headers := http.Header{}
	if r.config.Body != "" {
		headers.Set("Content-Type", "application/json")
	}
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		value, err := render(r.headers[name], s.each(escapeText))
		if err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}
		headers.Set(name, value)
	}
	body, err := render(r.body, s.each(escapeFor(headers.Get("Content-Type"))))
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if err := r.addSecrets(headers, known); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, errors.New("url: is not one that can be requested")
	}
	req.Header = headers
	if host := headers.Get("Host"); host != "" {
		req.Host = host
	}
	return req, nil
}

func (r *request) addSecrets(headers http.Header, known *secrets) error {
	add := func(field, header, before string, from secret.Value) error {
		value, err := known.Read(from)
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("%s: the secret has characters that no header may have", field)
		}
		headers.Set(header, before+value)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.config.SecretHeaders)) {
		if err := add("secretHeaders."+name, name, "", r.config.SecretHeaders[name]); err != nil {
			return err
		}
	}
	if !r.config.BearerToken.IsZero() {
		return add("bearerToken", "Authorization", "Bearer ", r.config.BearerToken)
	}
	return nil
}

// escapeFor is how values are escaped in a body.
func escapeFor(contentType string) func(string) string {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil, media == "application/json", strings.HasSuffix(media, "+json"):
		return escapeJSON
	case media == "application/x-www-form-urlencoded":
		return escapeURL
	default:
		return escapeText
	}
}

// unreachable says why no answer came, without the URL: the values in it are anybody's text.
func (a answer) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s did not answer: %s", a.host, a.secrets.excerpt(withoutURL(err).Error(), maxExcerpt))
}

func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// judge tells whether an answer is as expected, and what it was.
func (r *request) judge(a answer) Verdict {
	text := fmt.Sprintf("%s answered %s", a.host, a.secrets.excerpt(a.status, maxExcerpt))
	expected := a.code >= 200 && a.code <= 299
	if len(r.config.ExpectStatus) > 0 {
		expected = slices.Contains(r.config.ExpectStatus, a.code)
	}
	switch {
	case !expected:
		if said := a.secrets.excerpt(a.body, maxExcerpt); said != "" {
			text += ": " + said
		}
		return Verdict{Message: text}
	case !r.expectBody.MatchString(a.body):
		return Verdict{Message: fmt.Sprintf("%s, but its body does not match %q: %s", text, r.config.ExpectBody, a.secrets.excerpt(a.body, maxExcerpt))}
	default:
		return Verdict{OK: true, Message: text}
	}
}

// captured is what the request is to remember of an answer.
func (r *request) captured(a answer) (string, error) {
	if r.capture == nil {
		return "", nil
	}
	found := r.capture.FindStringSubmatch(a.body)
	switch {
	case found == nil:
		return "", fmt.Errorf("%s answered %s, but %q finds nothing to capture in it", a.host, a.status, r.config.Capture)
	case len(found[1]) > maxCaptured:
		return "", fmt.Errorf("%s answered %s, but %q captures %d bytes: at most %d are kept", a.host, a.status, r.config.Capture, len(found[1]), maxCaptured)
	}
	return a.secrets.RedactWhole(found[1]), nil
}

// newClient makes a client for one request: the authorities' file may change from one to the next. It follows no
// redirects, which could take secrets elsewhere.
func newClient(caFile string, timeout period.Duration) (*http.Client, error) {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile: %s holds no certificate in PEM", caFile)
		}
	}
	return &http.Client{
		Transport: transport, Timeout: timeout.Std(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
