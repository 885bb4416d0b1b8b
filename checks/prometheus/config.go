// Package prometheus asks by queries to a Prometheus server.
package prometheus

import (
	"strings"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of checks that are queries.
var Kind = checks.Kind{
	Name: "prometheus", Config: &Config{}, Shared: &Server{},
}

var _ checks.Checkable = &Config{}

// Server is the one that all queries go to.
type Server struct {
	// URL is the address of the server.
	URL string `json:"url" jsonschema:"required"`
	// BearerToken is the token of an Authorization header, a [secret](#secrets).
	BearerToken secret.Value `json:"bearerToken,omitzero"`
	// CAFile is a file with [authorities](#authorities) that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
	// Timeout is that of one query.
	Timeout period.Duration `json:"timeout,omitzero" jsonschema:"default=10s"`
	// AllowPlaintext lets the token go by http.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// Validate adds what is wrong.
func (s *Server) Validate(field string, p *sections.Problems) {
	u, err := outbound.ParseURL(s.URL)
	if u != nil {
		err = checks.CheckURL(u)
	}
	if err == nil {
		err = outbound.CheckPlaintext(u, !s.BearerToken.IsZero(), s.AllowPlaintext)
	}
	p.Check(field+".url", err)
	if !s.BearerToken.IsZero() {
		p.Check(field+".bearerToken", s.BearerToken.Validate())
	}
}

// Config is a query to the server of the section `prometheus`, and what it has to return.
type Config struct {
	// Query is a [template](#checks) of an instant query in PromQL, whose values are escaped for a string literal.
	Query string `json:"query" jsonschema:"required"`
	// Expect is `empty`, `nonEmpty`, or a comparison such as `>= 1` that every sample satisfies; no sample satisfies none.
	Expect string `json:"expect" jsonschema:"required"`
}

// Validate adds what is wrong.
func (c *Config) Validate(at checks.Place, p *sections.Problems) {
	if at.Shared == nil {
		p.Add(at.Field, "there is no server to query: set prometheus.url")
	}
	c.compile(at, "", p)
}

// Checker makes the query ready.
func (c *Config) Checker(at checks.Place, e checks.Environment) (checks.Checker, error) {
	var p sections.Problems
	q := c.compile(at, e.Agent, &p)
	return q, p.Join()
}

func (c *Config) compile(at checks.Place, agent string, p *sections.Problems) *query {
	q := &query{agent: agent, field: at.Field}
	if server, ok := at.Shared.(*Server); ok {
		q.server = *server
	}
	var err error
	if strings.TrimSpace(c.Query) == "" {
		p.Add(at.Field+".query", "required: a PromQL expression")
	}
	q.query, err = checks.ParseTemplate(c.Query)
	p.Check(at.Field+".query", err)
	q.expect, err = parseExpectation(c.Expect)
	p.Check(at.Field+".expect", err)
	return q
}
