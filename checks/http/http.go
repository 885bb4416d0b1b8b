package http

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
)

// maxCaptured bounds what is captured of an answer, in bytes.
const maxCaptured = 256

// Check asks once.
func (r *request) Check(ctx context.Context, c checks.Call) (checks.Verdict, error) {
	a, err := r.send(ctx, c.Subject, "")
	if err != nil {
		if errors.Is(err, checks.ErrMisconfigured) || ctx.Err() != nil {
			return checks.Verdict{}, err
		}
		return checks.Verdict{Message: err.Error()}, nil
	}
	return r.judge(a), nil
}

// Call calls a hook or a cleanup once.
func (r *request) Call(ctx context.Context, c checks.Call) (checks.Outcome, error) {
	a, err := r.send(ctx, c.Subject, c.Key)
	if err != nil {
		return checks.Outcome{}, err
	}
	verdict := r.judge(a)
	if !verdict.OK {
		return checks.Outcome{}, errors.New(verdict.Message)
	}
	captured, err := r.captured(a)
	outcome := checks.Outcome{Message: verdict.Message, Captured: captured}
	if c.Output {
		outcome.Output = outbound.Excerpt(&a.secrets, a.body, checks.MaxOutput)
	}
	return outcome, err
}

// answer is what a server said.
type answer struct {
	status  string
	code    int
	body    string
	host    string
	secrets secret.Redactor
}

// send makes the request once. The error is a *checks.Misconfigured one where no request could be made, and anything else
// where no answer came. A key makes repeated requests recognizable to the server.
func (r *request) send(ctx context.Context, s checks.Subject, key string) (answer, error) {
	var a answer
	req, byNode, err := r.build(ctx, s, &a.secrets)
	if err != nil {
		return a, r.misconfigured(err)
	}
	a.host = req.URL.Host
	req.Header.Set("User-Agent", r.agent)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	timeout := r.config.Timeout
	if timeout == 0 {
		timeout = checks.DefaultTimeout
	}
	options := outbound.Options{CAFile: r.config.CAFile, Timeout: timeout.Std()}
	if byNode {
		options.Node = &r.nodes
	}
	client, err := outbound.NewClient(options)
	if err != nil {
		return a, r.misconfigured(err)
	}
	response, err := client.Do(req)
	if err != nil {
		return a, a.unreachable(ctx, err)
	}
	defer response.Body.Close()
	if a.body, err = outbound.ReadBody(response); err != nil {
		return a, a.unreachable(ctx, err)
	}
	a.status, a.code = response.Status, response.StatusCode
	return a, nil
}

func (r *request) misconfigured(err error) error {
	return &checks.Misconfigured{Field: r.field, Err: err}
}

// build makes the request, and reports whether the node decides its host.
func (r *request) build(ctx context.Context, s checks.Subject, known *secret.Redactor) (req *http.Request, byNode bool, err error) {
	u, byNode, err := renderURL(r.url, s)
	if err != nil {
		return nil, false, fmt.Errorf("url: %w", err)
	}
	headers := http.Header{}
	if r.config.Body != "" {
		headers.Set("Content-Type", "application/json")
	}
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		value, err := checks.Render(r.headers[name], s.Each(escapeText))
		if err != nil {
			return nil, false, fmt.Errorf("headers.%s: %w", name, err)
		}
		headers.Set(name, value)
	}
	body, err := checks.Render(r.body, s.Each(escapeFor(headers.Get("Content-Type"))))
	if err != nil {
		return nil, false, fmt.Errorf("body: %w", err)
	}
	if err := r.addSecrets(headers, known); err != nil {
		return nil, false, err
	}
	req, err = http.NewRequestWithContext(ctx, r.method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, false, errors.New("url or method: no HTTP request can be made of them")
	}
	req.Header = headers
	if host := headers.Get("Host"); host != "" {
		req.Host = host
	}
	return req, byNode, nil
}

func (r *request) addSecrets(headers http.Header, known *secret.Redactor) error {
	for _, name := range slices.Sorted(maps.Keys(r.config.SecretHeaders)) {
		if err := outbound.SetSecret(headers, name, "", r.config.SecretHeaders[name], known); err != nil {
			return fmt.Errorf("secretHeaders.%s: %w", name, err)
		}
	}
	if r.config.BearerToken.IsZero() {
		return nil
	}
	if err := outbound.SetSecret(headers, "Authorization", "Bearer ", r.config.BearerToken, known); err != nil {
		return fmt.Errorf("bearerToken: %w", err)
	}
	return nil
}

// unreachable says why no answer came, without the URL: the values in it are anybody's text.
func (a answer) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s did not answer: %s", a.host, a.excerpt(outbound.WithoutURL(err).Error()))
}

func (a *answer) excerpt(text string) string {
	return outbound.Excerpt(&a.secrets, text, checks.MaxExcerpt)
}

// judge reports whether an answer is as expected, and what it was.
func (r *request) judge(a answer) checks.Verdict {
	text := fmt.Sprintf("%s answered %s", a.host, a.excerpt(a.status))
	expected := a.code >= 200 && a.code <= 299
	if len(r.config.ExpectStatus) > 0 {
		expected = slices.Contains(r.config.ExpectStatus, a.code)
	}
	switch {
	case !expected:
		if said := a.excerpt(a.body); said != "" {
			text += ": " + said
		}
		return checks.Verdict{Message: text}
	case !r.expectBody.MatchString(a.body):
		return checks.Verdict{Message: fmt.Sprintf("%s, but its body does not match %q: %s", text, r.config.ExpectBody, a.excerpt(a.body))}
	default:
		return checks.Verdict{OK: true, Message: text}
	}
}

// captured is what the request is to remember of an answer.
func (r *request) captured(a answer) (string, error) {
	if r.capture == nil {
		return "", nil
	}
	// Before: what is captured could be a piece of a secret, which nobody would recognize.
	found := r.capture.FindStringSubmatch(a.secrets.RedactWhole(a.body))
	status := a.excerpt(a.status)
	switch {
	case found == nil:
		return "", fmt.Errorf("%s answered %s, but %q finds nothing to capture in it", a.host, status, r.config.Capture)
	case len(found[1]) > maxCaptured:
		return "", fmt.Errorf("%s answered %s, but %q captures %d bytes: at most %d are kept", a.host, status, r.config.Capture, len(found[1]), maxCaptured)
	}
	return found[1], nil
}
