package checks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// maxAnswer bounds what is read of Prometheus's answer, maxSamples the samples that a message shows.
const (
	maxAnswer  = 8 << 20
	maxSamples = 3
)

// query is a query with its template parsed.
type query struct {
	field  string
	query  *template.Template
	expect expectation
}

// expectation is exactly one of its fields.
type expectation struct {
	text            string
	empty, nonEmpty bool
	// holds compares a sample.
	holds func(float64) bool
}

func (c Query) compile(field string, p *problems) *query {
	q := &query{field: field}
	var err error
	if strings.TrimSpace(c.Query) == "" {
		p.add(field+".query", "required: a PromQL expression")
	}
	q.query, err = parse(c.Query)
	p.check(field+".query", err)
	q.expect, err = parseExpectation(c.Expect)
	p.check(field+".expect", err)
	return q
}

var comparison = regexp.MustCompile(`^(==|!=|>=|<=|>|<)\s*(\S+)$`)

func parseExpectation(text string) (expectation, error) {
	e := expectation{text: strings.TrimSpace(text)}
	switch e.text {
	case "empty":
		e.empty = true
		return e, nil
	case "nonEmpty":
		e.nonEmpty = true
		return e, nil
	}
	wrong := fmt.Errorf("%q is not one of empty, nonEmpty or a comparison such as \">= 1\"", text)
	parts := comparison.FindStringSubmatch(e.text)
	if parts == nil {
		return e, wrong
	}
	limit, err := strconv.ParseFloat(parts[2], 64)
	if err != nil || limit != limit {
		return e, wrong
	}
	e.holds = map[string]func(float64) bool{
		"==": func(v float64) bool { return v == limit },
		// Nothing can be said of what is not a number.
		"!=": func(v float64) bool { return v != limit && v == v },
		">=": func(v float64) bool { return v >= limit },
		"<=": func(v float64) bool { return v <= limit },
		">":  func(v float64) bool { return v > limit },
		"<":  func(v float64) bool { return v < limit },
	}[parts[1]]
	return e, nil
}

// ask queries the server. The error is a *misconfigured one, or the context's; a server that does not answer is a verdict,
// since it may heal.
func (q *query) ask(ctx context.Context, server Prometheus, agent string, s Subject) (Verdict, error) {
	text, err := render(q.query, s.each(escapePromQL))
	if err != nil {
		return Verdict{}, &misconfigured{field: q.field, err: fmt.Errorf("query: %w", err)}
	}
	var known secrets
	api, err := server.client(agent, &known)
	if err != nil {
		return Verdict{}, &misconfigured{field: "prometheus", err: err}
	}
	value, warnings, err := api.Query(ctx, text, time.Time{})
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	if err != nil {
		return q.unanswered(err, known)
	}
	if len(warnings) > 0 {
		// An answer from a part of the data may hide what the other part says.
		return Verdict{Message: "Prometheus warns of its answer: " + known.excerpt(strings.Join(warnings, "; "), maxExcerpt)}, nil
	}
	verdict, err := q.expect.judge(value)
	if err != nil {
		return Verdict{}, &misconfigured{field: q.field, err: err}
	}
	verdict.Message = known.excerpt(verdict.Message, 3*maxExcerpt)
	return verdict, nil
}

func (q *query) unanswered(err error, known secrets) (Verdict, error) {
	text := known.excerpt(withoutURL(err).Error(), maxExcerpt)
	if answered, ok := errors.AsType[*prometheusv1.Error](err); ok {
		if answered.Type == prometheusv1.ErrBadData {
			return Verdict{}, &misconfigured{field: q.field, err: fmt.Errorf("query: Prometheus refuses it: %s", text)}
		}
		if answered.Detail != "" {
			text += ": " + known.excerpt(answered.Detail, maxExcerpt)
		}
	}
	return Verdict{Message: "Prometheus did not answer: " + text}, nil
}

func (c Prometheus) client(agent string, known *secrets) (prometheusv1.API, error) {
	client, err := newClient(c.CAFile, c.Timeout)
	if err != nil {
		return nil, err
	}
	headers := http.Header{"User-Agent": {agent}}
	if !c.BearerToken.IsZero() {
		token, err := known.Read(c.BearerToken)
		if err != nil {
			return nil, fmt.Errorf("bearerToken: %w", err)
		}
		headers.Set("Authorization", "Bearer "+token)
	}
	client.Transport = dressed{next: client.Transport, headers: headers}
	connection, err := prometheus.NewClient(prometheus.Config{Address: c.URL, Client: client})
	if err != nil {
		return nil, errors.New("url: is not a URL")
	}
	return prometheusv1.NewAPI(connection), nil
}

// dressed adds headers to requests and bounds the answers.
type dressed struct {
	next    http.RoundTripper
	headers http.Header
}

func (d dressed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range d.headers {
		r.Header[name] = values
	}
	response, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}

func (e expectation) judge(value model.Value) (Verdict, error) {
	var samples model.Vector
	switch value := value.(type) {
	case model.Vector:
		samples = value
	case *model.Scalar:
		samples = model.Vector{{Value: value.Value}}
	default:
		return Verdict{}, fmt.Errorf("query: gives a %s: want an instant vector or a scalar", value.Type())
	}
	switch {
	case e.empty && len(samples) == 0:
		return Verdict{OK: true, Message: "the query returned nothing"}, nil
	case e.empty:
		return Verdict{Message: fmt.Sprintf("the query returned %s, want nothing", shown(samples))}, nil
	case len(samples) == 0:
		return Verdict{Message: "the query returned nothing, want " + e.wanted()}, nil
	case e.nonEmpty:
		return Verdict{OK: true, Message: "the query returned " + shown(samples)}, nil
	}
	failing := slices.DeleteFunc(slices.Clone(samples), func(s *model.Sample) bool { return e.holds(float64(s.Value)) })
	if len(failing) > 0 {
		return Verdict{Message: fmt.Sprintf("the query returned %s, want %s", shown(failing), e.wanted())}, nil
	}
	return Verdict{OK: true, Message: "the query returned " + shown(samples)}, nil
}

func (e expectation) wanted() string {
	if e.nonEmpty {
		return "something"
	}
	return "all " + e.text
}

// shown is the first samples, in an order that does not change from one answer to the next.
func shown(samples model.Vector) string {
	var texts []string
	for _, s := range samples {
		if len(s.Metric) == 0 {
			texts = append(texts, s.Value.String())
		} else {
			texts = append(texts, fmt.Sprintf("%s = %s", s.Metric, s.Value))
		}
	}
	slices.Sort(texts)
	text := strings.Join(texts[:min(maxSamples, len(texts))], ", ")
	if more := len(texts) - maxSamples; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
