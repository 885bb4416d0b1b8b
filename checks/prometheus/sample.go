package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
)

// maxWarnings bounds the warnings of an answer that are shown.
const maxWarnings = 3

// Sample asks for the one sample of an instant query, once. The URL may have a user and a password in it, which the error does
// not show.
func (s Server) Sample(ctx context.Context, agent, query string) (value float64, warnings []string, err error) {
	var known secret.Redactor
	// Only the credentials: a path or a host says which server an error is about.
	if u, err := url.Parse(s.URL); err == nil && u.User != nil {
		known.Add((&url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User}).String())
	}
	api, err := s.client(agent, &known)
	if err != nil {
		return 0, nil, known.Error(err)
	}
	answer, warned, err := api.Query(ctx, query, time.Time{})
	if ctx.Err() != nil {
		return 0, nil, context.Cause(ctx)
	}
	if err != nil {
		text, _ := explained(err, &known)
		return 0, nil, errors.New(text)
	}
	for _, warning := range warned[:min(len(warned), maxWarnings)] {
		warnings = append(warnings, outbound.Excerpt(&known, warning, checks.MaxExcerpt))
	}
	samples, ok := answer.(model.Vector)
	switch {
	case !ok:
		return 0, warnings, fmt.Errorf("the query gives a %s: want an instant vector with one sample", answer.Type())
	case len(samples) != 1:
		return 0, warnings, fmt.Errorf("the query gives %d samples: want exactly one", len(samples))
	}
	return float64(samples[0].Value), warnings, nil
}
