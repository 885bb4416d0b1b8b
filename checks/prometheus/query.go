package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/template"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
)

// maxAnswer bounds what is read of Prometheus's answer, in bytes.
const maxAnswer = 8 << 20

// query is a query with its template parsed, and the server that it goes to.
type query struct {
	server Server
	agent  string
	field  string
	query  *template.Template
	expect expectation
}

// Check queries the server. The error is a *checks.Misconfigured one, or the context's; a server that does not answer is a
// verdict, since it may heal.
func (q *query) Check(ctx context.Context, c checks.Call) (checks.Verdict, error) {
	text, err := checks.Render(q.query, c.Subject.Each(escape))
	if err != nil {
		return checks.Verdict{}, q.misconfigured(fmt.Errorf("query: %w", err))
	}
	var known secret.Redactor
	api, err := q.server.client(q.agent, &known)
	if err != nil {
		return checks.Verdict{}, &checks.Misconfigured{Field: "prometheus", Err: err}
	}
	value, warnings, err := api.Query(ctx, text, time.Time{})
	if ctx.Err() != nil {
		return checks.Verdict{}, context.Cause(ctx)
	}
	if err != nil {
		return q.unanswered(err, &known)
	}
	if len(warnings) > 0 {
		// An answer from a part of the data may hide what the other part says.
		text := outbound.Excerpt(&known, strings.Join(warnings, "; "), checks.MaxExcerpt)
		return checks.Verdict{Message: "Prometheus warns of its answer: " + text}, nil
	}
	verdict, err := q.expect.judge(value)
	if err != nil {
		return checks.Verdict{}, q.misconfigured(err)
	}
	verdict.Message = outbound.Excerpt(&known, verdict.Message, 3*checks.MaxExcerpt)
	return verdict, nil
}

func (q *query) misconfigured(err error) error {
	return &checks.Misconfigured{Field: q.field, Err: err}
}

func (q *query) unanswered(err error, known *secret.Redactor) (checks.Verdict, error) {
	text, refused := explained(err, known)
	if refused {
		return checks.Verdict{}, q.misconfigured(fmt.Errorf("query: %s", text))
	}
	return checks.Verdict{Message: text}, nil
}

// explained says why a query has no answer; refused is true if the query itself is wrong.
func explained(err error, known *secret.Redactor) (text string, refused bool) {
	text = outbound.Excerpt(known, outbound.WithoutURL(err).Error(), checks.MaxExcerpt)
	if answered, ok := errors.AsType[*prometheusv1.Error](err); ok {
		if answered.Type == prometheusv1.ErrBadData {
			return "Prometheus refuses it: " + text, true
		}
		if answered.Detail != "" {
			text += ": " + outbound.Excerpt(known, answered.Detail, checks.MaxExcerpt)
		}
	}
	return "Prometheus did not answer: " + text, false
}

func (s Server) client(agent string, known *secret.Redactor) (prometheusv1.API, error) {
	options := outbound.Options{
		CAFile: s.CAFile, Timeout: s.Timeout.Std(), MaxBody: maxAnswer, Header: http.Header{"User-Agent": {agent}},
	}
	if s.Timeout == 0 {
		options.Timeout = checks.DefaultTimeout.Std()
	}
	if !s.BearerToken.IsZero() {
		if err := outbound.SetSecret(options.Header, "Authorization", "Bearer ", s.BearerToken, known); err != nil {
			return nil, fmt.Errorf("bearerToken: %w", err)
		}
	}
	client, err := outbound.NewClient(options)
	if err != nil {
		return nil, err
	}
	connection, err := prometheus.NewClient(prometheus.Config{Address: s.URL, Client: client})
	if err != nil {
		return nil, errors.New("url: is not a URL")
	}
	return prometheusv1.NewAPI(connection), nil
}

// escape writes a value as the inside of a string literal, whichever of the three quotes stand around it.
func escape(value string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(value, "�") {
		if r < ' ' || strings.ContainsRune("\"'`\\\x7f", r) {
			fmt.Fprintf(&out, `\x%02x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
