// Package job checks and calls by Jobs of Kubernetes that run on the node.
package job

import (
	"time"

	names "k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of checks, hooks and works that are Jobs.
var Kind = checks.Kind{
	Name: "job", Config: &Config{},
}

var (
	_ checks.Checkable = &Config{}
	_ checks.Callable  = &Config{}
	_ checks.Startable = &Config{}
)

// Beginner looks after Jobs that were begun.
func (*Config) Beginner(e checks.Environment) checks.Beginner {
	return &run{at: checks.Place{Role: checks.RoleWork}, kubernetes: e.Kubernetes}
}

// DefaultDeadline is that of a check's Job where nothing says another one.
const DefaultDeadline = period.Duration(10 * time.Minute)

// Config is a Kubernetes Job that runs on the node, cordoned as it is.
type Config struct {
	// TemplateFile is the path of the manifest of a batch/v1 Job in YAML. It is read when the worker starts and for each Job.
	TemplateFile string `json:"templateFile" jsonschema:"required"`
	// Namespace is the one in which the Job runs.
	Namespace string `json:"namespace" jsonschema:"required"`
	// Deadline is the Job's activeDeadlineSeconds, where the manifest has none: 10m of a check, and the deadline of the hook or the work,
	// where another one is not given.
	Deadline period.Duration `json:"deadline,omitzero"`
}

// In is the namespace in which the Job runs.
func (c *Config) In() string { return c.Namespace }

// Validate adds what is wrong. It does not read the manifest.
func (c *Config) Validate(at checks.Place, p *sections.Problems) {
	if c.TemplateFile == "" {
		p.Add(at.Field+".templateFile", "required: the file with the manifest of a batch/v1 Job")
	}
	if wrong := names.IsDNS1123Label(c.Namespace); len(wrong) > 0 {
		p.Add(at.Field+".namespace", "%q is not a namespace: %s", c.Namespace, wrong[0])
	}
}

// Checker makes the Job ready; its manifest is tried.
func (c *Config) Checker(at checks.Place, e checks.Environment) (checks.Checker, error) {
	return c.ready(at, e)
}

// Caller makes the Job ready; its manifest is tried.
func (c *Config) Caller(at checks.Place, e checks.Environment) (checks.Caller, error) {
	return c.ready(at, e)
}

func (c *Config) ready(at checks.Place, e checks.Environment) (*run, error) {
	r := &run{config: *c, at: at, kubernetes: e.Kubernetes}
	if r.config.Deadline == 0 {
		r.config.Deadline = at.Deadline
	}
	if r.config.Deadline == 0 {
		r.config.Deadline = DefaultDeadline
	}
	_, err := r.manifest()
	return r, err
}
