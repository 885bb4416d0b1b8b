// Package checks asks, by HTTP, by Prometheus and by Jobs, whether a node is well, and calls hooks around a
// maintenance. What is called is defined in the worker's configuration: whoever starts a maintenance can only name it.
package checks

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"drydock/config/named"
	"drydock/config/secret"
	"drydock/rules/period"
	"drydock/rules/validation"
)

// Config are the checks and hooks that maintenances may name.
type Config struct {
	Checks     Checks      `json:"checks,omitempty"`
	Hooks      Hooks       `json:"hooks,omitempty"`
	Prometheus *Prometheus `json:"prometheus,omitempty"`
}

// Checks are checks by name.
type Checks map[string]Check

// UnmarshalJSON reads the checks strictly; the error begins every line with the field.
func (c *Checks) UnmarshalJSON(data []byte) error {
	all, err := named.Decode[Check]("checks", data)
	*c = all
	return err
}

// Hooks are hooks by name.
type Hooks map[string]Hook

// UnmarshalJSON reads the hooks strictly; the error begins every line with the field.
func (h *Hooks) UnmarshalJSON(data []byte) error {
	all, err := named.Decode[Hook]("hooks", data)
	*h = all
	return err
}

// Check is exactly one of its fields.
type Check struct {
	HTTP       *HTTP  `json:"http,omitempty"`
	Prometheus *Query `json:"prometheus,omitempty"`
	Job        *Job   `json:"job,omitempty"`
}

// Hook is exactly one of HTTP, Job and Signal, and how the maintenance goes along with it.
type Hook struct {
	HTTP *HTTP `json:"http,omitempty"`
	Job  *Job  `json:"job,omitempty"`
	// Signal calls nothing: the maintenance waits for somebody's signal.
	Signal *struct{} `json:"signal,omitempty"`
	// Blocking: the maintenance waits for the hook; absent is true.
	Blocking *bool `json:"blocking,omitempty"`
	// Deadline is the time after which the hook has failed; 0 is validation.DefaultHookDeadline.
	Deadline period.Duration `json:"deadline,omitzero"`
	// OnFailure is what becomes of the maintenance; absent is FailMaintenance for a hook that blocks.
	OnFailure validation.OnFailure `json:"onFailure,omitempty"`
	// Closing undoes the hook at every end of the maintenance.
	Closing *Closing `json:"closing,omitempty"`
}

// Closing is exactly one of its fields.
type Closing struct {
	HTTP *HTTP `json:"http,omitempty"`
	Job  *Job  `json:"job,omitempty"`
}

// HTTP is a request. URL, headers and body are Go templates over Subject.
type HTTP struct {
	// URL gets its values percent-encoded. Its scheme is fixed, and its host may depend on Cluster, Node and
	// InternalIP only.
	URL string `json:"url"`
	// Method is GET for a check and POST for a hook where it is absent.
	Method string `json:"method,omitempty"`
	// Headers gets its values without control characters.
	Headers map[string]string `json:"headers,omitempty"`
	// SecretHeaders are sent as they are; BearerToken is the token of an Authorization header.
	SecretHeaders map[string]secret.Value `json:"secretHeaders,omitempty"`
	BearerToken   secret.Value            `json:"bearerToken,omitzero"`
	// Body gets its values escaped for a JSON string, or as its Content-Type has it: percent-encoded for a form, as they
	// are for anything else.
	Body string `json:"body,omitempty"`
	// ExpectStatus are the statuses that are well; absent is 200 to 299. Redirects are not followed.
	ExpectStatus []int `json:"expectStatus,omitempty"`
	// ExpectBody is a regular expression that the first MiB of the answer has to match.
	ExpectBody string `json:"expectBody,omitempty"`
	// Capture is a regular expression with one group over the answer to a hook. What it finds is given to the closing's
	// templates as Captured, and is kept in the maintenance's history.
	Capture string `json:"capture,omitempty"`
	// Timeout bounds one request; 0 is DefaultTimeout.
	Timeout period.Duration `json:"timeout,omitzero"`
	// CAFile are the authorities to trust in place of the system's.
	CAFile string `json:"caFile,omitempty"`
}

// Prometheus is the server that is queried.
type Prometheus struct {
	URL         string          `json:"url"`
	BearerToken secret.Value    `json:"bearerToken,omitzero"`
	CAFile      string          `json:"caFile,omitempty"`
	Timeout     period.Duration `json:"timeout,omitzero"`
}

// Query is an instant query and what it has to return.
type Query struct {
	// Query is a Go template over Subject, whose values are escaped for a string literal.
	Query string `json:"query"`
	// Expect is "empty", "nonEmpty" or a comparison such as ">= 1", which every sample has to satisfy; no sample
	// satisfies no comparison.
	Expect string `json:"expect"`
}

// Job is a Kubernetes Job that runs on the node.
type Job struct {
	// TemplateFile is the manifest of a batch/v1 Job in YAML.
	TemplateFile string `json:"templateFile"`
	Namespace    string `json:"namespace"`
	// Deadline is the Job's activeDeadlineSeconds where the manifest has none; 0 is the hook's deadline, and
	// DefaultJobDeadline for a check.
	Deadline period.Duration `json:"deadline,omitzero"`
}

// Where the configuration says nothing.
const (
	DefaultTimeout     = period.Duration(10 * time.Second)
	DefaultJobDeadline = period.Duration(10 * time.Minute)
)

// Validate checks the configuration without reading any file; the error joins one line per wrong field.
func (c Config) Validate() error {
	_, err := compile(c)
	return err
}

// compiled is a configuration that is ready to be called.
type compiled struct {
	checks map[string]check
	hooks  map[string]hook
}

// action is exactly one of its fields.
type action struct {
	http *request
	job  *Job
}

type check struct {
	action
	query *query
}

type hook struct {
	action
	plan    validation.HookPlan
	closing *action
}

func compile(c Config) (compiled, error) {
	var p problems
	out := compiled{checks: map[string]check{}, hooks: map[string]hook{}}
	for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
		field := "checks." + name
		p.check(field, validation.Name(name))
		out.checks[name] = c.Checks[name].compile(field, c.Prometheus != nil, &p)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
		field := "hooks." + name
		p.check(field, validation.Name(name))
		out.hooks[name] = c.Hooks[name].compile(field, name, &p)
	}
	if c.Prometheus != nil {
		c.Prometheus.validate("prometheus", &p)
	}
	return out, errors.Join(p...)
}

func (c Check) compile(field string, withPrometheus bool, p *problems) check {
	var out check
	if n := count(c.HTTP != nil, c.Prometheus != nil, c.Job != nil); n != 1 {
		p.add(field, "has %d of http, prometheus and job: want exactly one", n)
	}
	if c.HTTP != nil {
		out.http = c.HTTP.compile(field+".http", "GET", p)
		if c.HTTP.Capture != "" {
			p.add(field+".http.capture", "has no meaning in a check: only a hook's closing is given what was captured")
		}
	}
	if c.Prometheus != nil {
		if !withPrometheus {
			p.add(field+".prometheus", "there is no server to query: set prometheus.url")
		}
		out.query = c.Prometheus.compile(field+".prometheus", p)
	}
	if c.Job != nil {
		out.job = c.Job.compile(field+".job", DefaultJobDeadline, p)
	}
	return out
}

func (h Hook) compile(field, name string, p *problems) hook {
	plan := validation.HookPlan{
		Name: name, Blocking: h.Blocking == nil || *h.Blocking, Deadline: h.Deadline, HasClosing: h.Closing != nil, OnFailure: h.OnFailure,
	}
	if plan.Deadline == 0 {
		plan.Deadline = validation.DefaultHookDeadline
	}
	if n := count(h.HTTP != nil, h.Job != nil, h.Signal != nil); n != 1 {
		p.add(field, "has %d of http, job and signal: want exactly one", n)
	}
	out := hook{}
	switch {
	case h.HTTP != nil:
		plan.Kind = validation.KindHTTP
		out.http = h.HTTP.compile(field+".http", "POST", p)
	case h.Job != nil:
		plan.Kind = validation.KindJob
		out.job = h.Job.compile(field+".job", plan.Deadline, p)
	case h.Signal != nil:
		plan.Kind = validation.KindSignal
		if !plan.Blocking {
			p.add(field+".blocking", "a signal that nobody waits for has no meaning: leave blocking out")
		}
	}
	switch plan.OnFailure {
	case "":
		plan.OnFailure = validation.FailMaintenance
		if !plan.Blocking {
			plan.OnFailure = validation.ContinueAnyway
		}
	case validation.FailMaintenance:
		if !plan.Blocking {
			p.add(field+".onFailure", "%q needs blocking: nobody waits for the failure", plan.OnFailure)
		}
	case validation.ContinueAnyway:
	default:
		p.add(field+".onFailure", "%q is not one of fail, continue", plan.OnFailure)
	}
	out.plan = plan
	if h.Closing != nil {
		out.closing = h.Closing.compile(field+".closing", plan.Deadline, p)
	}
	return out
}

func (c Closing) compile(field string, deadline period.Duration, p *problems) *action {
	var out action
	if n := count(c.HTTP != nil, c.Job != nil); n != 1 {
		p.add(field, "has %d of http and job: want exactly one", n)
	}
	if c.HTTP != nil {
		out.http = c.HTTP.compile(field+".http", "POST", p)
		if c.HTTP.Capture != "" {
			p.add(field+".http.capture", "has no meaning in a closing: nothing is called after it")
		}
	}
	if c.Job != nil {
		out.job = c.Job.compile(field+".job", deadline, p)
	}
	return &out
}

func (c Prometheus) validate(field string, p *problems) {
	p.check(field+".url", staticURL(c.URL))
	if !c.BearerToken.IsZero() {
		p.check(field+".bearerToken", c.BearerToken.Validate())
	}
}

// staticURL checks a URL that is no template. The error does not show it: it may hold credentials.
func staticURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("is not a URL: want http:// or https:// and a host")
	}
	return checkURL(u)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("has the scheme %q: want http or https", u.Scheme)
	case u.User != nil:
		return errors.New("holds credentials: put them in a file or the environment, and name it in bearerToken or secretHeaders")
	case u.Hostname() == "":
		return errors.New("has no host")
	}
	return nil
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// problems gathers one error per wrong field.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (p *problems) check(field string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%s: %w", field, err))
	}
}
