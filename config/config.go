// Package config is the worker's configuration: one YAML file with defaults, the environment and flags over it.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/policy"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/window"
)

// Config is the configuration of a worker. The connection to Temporal is not part of it: that is the environment's, as in
// every other Temporal tool.
type Config struct {
	// Cluster prefixes workflow IDs and the task queue; empty where a Temporal namespace serves one cluster.
	Cluster   string `json:"cluster"`
	TaskQueue string `json:"taskQueue"`
	// Scheduler applies when the scheduler is first started; from then on its own state counts.
	Scheduler Scheduler `json:"scheduler"`
	// Defaults are defaults of maintenances: any field of their input but those that identify one.
	Defaults json.RawMessage `json:"defaults,omitempty"`
	// Policy are rules that no maintenance may break, whatever its input says. Quotas are limits of single requestors:
	// as those of Scheduler they apply when the scheduler is first started.
	Policy []policy.Rule   `json:"policy,omitempty"`
	Quotas schedule.Quotas `json:"quotas,omitzero"`
	// Windows are when nodes may be taken out of service, by the names that limits and maintenances give.
	Windows map[string]window.Window `json:"windows,omitempty"`
	// Channels, Checks, Hooks, Work and Prometheus are what maintenances may name. Whoever starts one can only name them.
	Channels   notify.Config  `json:"channels,omitempty"`
	Checks     checks.Checks  `json:"checks,omitempty"`
	Hooks      checks.Hooks   `json:"hooks,omitempty"`
	Work       checks.Works   `json:"work,omitempty"`
	Prometheus checks.Section `json:"prometheus,omitzero"`
	// Outbound bounds where the worker calls.
	Outbound Outbound `json:"outbound,omitzero"`
	// HealthChecks are the checks that the worker makes sure of, by name; Health is what holds for all of the cluster.
	HealthChecks HealthChecks `json:"healthChecks,omitempty"`
	Health       Health       `json:"health,omitzero"`
	// Profiles says where the configuration of SAP's maintenance-controller is.
	Profiles Profiles `json:"profiles,omitzero"`
	// Audit says where the records of ended maintenances go.
	Audit      audit.Config `json:"audit,omitzero"`
	Kubernetes Kubernetes   `json:"kubernetes"`
	Versioning Versioning   `json:"versioning"`
	// Listen is the address of /metrics, /healthz and /readyz; AdminListen, on loopback, that of /loglevel.
	Listen      string `json:"listen"`
	AdminListen string `json:"adminListen"`
	Log         Log    `json:"log"`
	// Metrics bounds what metrics cost.
	Metrics Metrics `json:"metrics"`
}

// Scheduler are the limits in which nodes may be taken out of service, and what becomes of orphans.
type Scheduler struct {
	schedule.Limits
	// OnOrphan says what happens to the node of a maintenance that was terminated: release it, or report it and
	// leave it as it is. Its slot is taken back either way.
	OnOrphan string `json:"onOrphan"`
}

// Kubernetes bounds what one worker asks of the API server.
type Kubernetes struct {
	Kubeconfig string  `json:"kubeconfig,omitempty"`
	Context    string  `json:"context,omitempty"`
	QPS        float32 `json:"qps"`
	Burst      int     `json:"burst"`
	// EvictionsPerSecond bounds all drains of a worker together; 0 is unlimited.
	EvictionsPerSecond float64 `json:"evictionsPerSecond"`
	// Events records Kubernetes Events on nodes, PodEvents one on each pod that is evicted.
	Events    bool `json:"events"`
	PodEvents bool `json:"podEvents"`
	// NodeConditions shows the conditions of a node's lifecycle (KEP-5683) on nodes under maintenance. It costs a
	// read of the node, and a write to its status, for each step of a maintenance.
	NodeConditions bool `json:"nodeConditions"`
	// Marks have other remediators leave nodes under maintenance alone.
	Marks Marks `json:"marks"`
	// PodUID is that of the pod the worker runs in. Only the environment has it.
	PodUID types.UID `json:"-"`
}

// Marks are those that other remediators know.
type Marks struct {
	// Medik8s labels the node for NodeHealthCheck and its remediators, ClusterAPI annotates its Machine.
	Medik8s    bool `json:"medik8s"`
	ClusterAPI bool `json:"clusterAPI"`
}

// Versioning makes a worker one version of a Temporal Worker Deployment, so that an operator decides which build takes
// new work; running maintenances move to it at their next step.
type Versioning struct {
	// Deployment names the Worker Deployment; empty where workers are not versioned.
	Deployment string `json:"deployment"`
	// BuildID identifies this build; empty for the binary's own version.
	BuildID string `json:"buildID"`
}

// Log is how the worker logs.
type Log struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

// Default is the configuration where nothing is configured.
func Default() Config {
	return Config{
		TaskQueue:  "drydock",
		Scheduler:  Scheduler{Limits: schedule.Limits{}.WithDefaults(), OnOrphan: "release"},
		Kubernetes: Kubernetes{QPS: 200, Burst: 400, EvictionsPerSecond: 100, Events: true, PodEvents: true},
		Listen:     "127.0.0.1:8080", AdminListen: "127.0.0.1:8081",
		Health: Health{MachineHealthChecks: RespectMachineHealthChecks},
		Log:    Log{Level: "info", Format: "text"}, Metrics: Metrics{StateEvery: spec.Duration(15 * time.Second)},
	}
}

// Kinds are the kinds of channels, checks, hooks and sinks that a configuration may have. The caller passes them, so that a program that
// needs another part of the configuration does not link their libraries. Of a section whose kinds are not given, only the names are read:
// the rest is kept undecoded, and is not validated.
type Kinds struct {
	Channels notify.Kinds
	Checks   checks.Kinds
	Sinks    audit.Kinds
}

// Load reads a file over the defaults and the environment over the file. An empty path reads no file. The result is
// not validated yet: flags may come over it.
func Load(path string, getenv func(string) string, kinds Kinds) (Config, error) {
	c := Default()
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("reading the configuration: %w", err)
		}
		if err := Parse(data, &c, kinds); err != nil {
			return c, errors.New(path + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+path+": "))
		}
	}
	return c, c.fromEnvironment(getenv)
}

// Parse reads YAML strictly over what c holds: unknown fields and null are errors.
func Parse(data []byte, c *Config, kinds Kinds) error {
	asJSON := data
	if !json.Valid(data) { // a reader of YAML does not read all of JSON: no surrogate pairs
		var err error
		if asJSON, err = yaml.YAMLToJSONStrict(data); err != nil {
			return err
		}
	}
	if string(asJSON) == "null" {
		return nil
	}
	if err := spec.DecodeStrict(asJSON, c); err != nil {
		return err
	}
	return c.decode(kinds)
}

// decode reads the sections whose kinds are given.
func (c *Config) decode(kinds Kinds) error {
	var problems []error
	if len(kinds.Sinks) > 0 {
		problems = append(problems, c.Audit.Decode(kinds.Sinks))
	}
	if len(kinds.Channels) > 0 {
		problems = append(problems, c.Channels.Decode(kinds.Channels))
	}
	if len(kinds.Checks) > 0 {
		section := c.ChecksAndHooks()
		problems = append(problems, section.Decode(kinds.Checks))
		c.Prometheus = section.Prometheus
	}
	return errors.Join(problems...)
}

// environment are the variables, each with what it sets.
var environment = map[string]func(c *Config, value string) error{
	"DRYDOCK_CLUSTER":      func(c *Config, v string) error { c.Cluster = v; return nil },
	"DRYDOCK_TASK_QUEUE":   func(c *Config, v string) error { c.TaskQueue = v; return nil },
	"DRYDOCK_LISTEN":       func(c *Config, v string) error { c.Listen = v; return nil },
	"DRYDOCK_ADMIN_LISTEN": func(c *Config, v string) error { c.AdminListen = v; return nil },
	"DRYDOCK_LOG_LEVEL":    func(c *Config, v string) error { c.Log.Level = v; return nil },
	"DRYDOCK_LOG_FORMAT":   func(c *Config, v string) error { c.Log.Format = v; return nil },
	"DRYDOCK_DEPLOYMENT":   func(c *Config, v string) error { c.Versioning.Deployment = v; return nil },
	"DRYDOCK_BUILD_ID":     func(c *Config, v string) error { c.Versioning.BuildID = v; return nil },
	"DRYDOCK_POD_UID":      func(c *Config, v string) error { c.Kubernetes.PodUID = types.UID(v); return nil },
	"DRYDOCK_KUBERNETES_QPS": func(c *Config, v string) error {
		qps, err := number(v)
		c.Kubernetes.QPS = float32(qps)
		return err
	},
	"DRYDOCK_KUBERNETES_BURST": func(c *Config, v string) (err error) {
		if c.Kubernetes.Burst, err = strconv.Atoi(v); err != nil {
			return fmt.Errorf("%.20q: want a whole number", v)
		}
		return nil
	},
	"DRYDOCK_EVICTIONS_PER_SECOND": func(c *Config, v string) (err error) {
		c.Kubernetes.EvictionsPerSecond, err = number(v)
		return err
	},
}

func number(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%.20q: want a number", text)
	}
	return n, nil
}

// Environment lists the variables that Load reads.
func Environment() []string {
	var names []string
	for name := range environment {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *Config) fromEnvironment(getenv func(string) string) error {
	var problems []error
	for _, name := range Environment() {
		if value := getenv(name); value != "" {
			if err := environment[name](c, value); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// Validate checks the whole configuration; the error joins one line per wrong field. No secret is read and no manifest of
// a Job: checks.New does that.
func (c Config) Validate() error {
	var problems []error
	wrong := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if err := spec.ClusterName(c.Cluster); err != nil {
		wrong("cluster", "%s", err)
	}
	if c.TaskQueue == "" || strings.Contains(c.TaskQueue, "/") {
		wrong("taskQueue", "%q: want a name without '/'", c.TaskQueue)
	}
	if err := c.Scheduler.Limits.WithDefaults().Validate(); err != nil {
		problems = append(problems, prefixed("scheduler", err))
	}
	if !c.Scheduler.Quotas.IsZero() {
		wrong("scheduler.quotas", "write it as quotas, beside policy")
	}
	if err := c.Quotas.Validate(); err != nil {
		problems = append(problems, prefixed("quotas", err))
	}
	_, err := policy.Compile(c.Policy)
	problems = append(problems, err)
	if c.Scheduler.OnOrphan != "release" && c.Scheduler.OnOrphan != "report" {
		wrong("scheduler.onOrphan", "%q is not one of release, report", c.Scheduler.OnOrphan)
	}
	problems = append(problems, c.Channels.Validate(), c.ChecksAndHooks().Validate())
	if err := c.Audit.Validate(); err != nil {
		problems = append(problems, prefixed("audit", err))
	}
	problems = append(problems, c.checkDefaults()...)
	problems = append(problems, c.checkGroups()...)
	problems = append(problems, c.checkWindows()...)
	problems = append(problems, c.checkHealth()...)
	problems = append(problems, c.Profiles.validate()...)
	_, err = c.Outbound.nodeAddresses()
	problems = append(problems, err)
	problems = append(problems, c.Kubernetes.validate()...)
	problems = append(problems, c.Versioning.validate()...)
	problems = append(problems, c.Metrics.validate()...)
	if _, err := hostOf(c.Listen); c.Listen != "" && err != nil {
		wrong("listen", "%q: want host:port with a port up to 65535, or empty for none", c.Listen)
	}
	if host, err := hostOf(c.AdminListen); c.AdminListen != "" && (err != nil || !outbound.IsLoopback(host)) {
		wrong("adminListen", "%q: want a loopback address such as 127.0.0.1:8081, or empty for none: whoever reaches it changes the log level", c.AdminListen)
	}
	if _, err := ParseLevel(c.Log.Level); err != nil {
		wrong("log.level", "%s", err)
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		wrong("log.format", "%q is not one of text, json", c.Log.Format)
	}
	return errors.Join(problems...)
}

// hostOf is the host of an address to listen on, whose port is a number.
func hostOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return host, err
}

// levels are those of the log.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// ParseLevel reads a level of the log.
func ParseLevel(text string) (slog.Level, error) {
	level, ok := levels[strings.ToLower(text)]
	if !ok {
		return 0, fmt.Errorf("%.20q is not one of debug, info, warn, error", text)
	}
	return level, nil
}

// Limits are those that a scheduler begins with.
func (c Config) Limits() schedule.Limits {
	limits := c.Scheduler.Limits.WithDefaults()
	limits.Quotas = c.Quotas
	return limits
}

// ChecksAndHooks is the part of the configuration that checks.New takes.
func (c Config) ChecksAndHooks() checks.Config {
	allowed, _ := c.Outbound.nodeAddresses() // Validate reports what is wrong with them; no range is allowed then
	return checks.Config{Checks: c.Checks, Hooks: c.Hooks, Work: c.Work, Prometheus: c.Prometheus, NodeAddresses: allowed}
}

func (k Kubernetes) validate() []error {
	var problems []error
	if k.QPS <= 0 {
		problems = append(problems, fmt.Errorf("kubernetes.qps: %v: want more than 0", k.QPS))
	}
	if k.Burst <= 0 {
		problems = append(problems, fmt.Errorf("kubernetes.burst: %v: want more than 0", k.Burst))
	}
	if k.EvictionsPerSecond < 0 {
		problems = append(problems, fmt.Errorf("kubernetes.evictionsPerSecond: %v is negative; 0 is unlimited", k.EvictionsPerSecond))
	}
	return problems
}

func (v Versioning) validate() []error {
	var problems []error
	if strings.Contains(v.Deployment, ".") || strings.HasPrefix(v.Deployment, "__") {
		problems = append(problems, fmt.Errorf("versioning.deployment: %q: want a name without '.' that does not begin with \"__\"", v.Deployment))
	}
	if v.BuildID != "" && v.Deployment == "" {
		problems = append(problems, fmt.Errorf("versioning.buildID: %q has no meaning without versioning.deployment", v.BuildID))
	}
	return problems
}

// prefixed puts a section's name in front of every line of its error.
func prefixed(section string, err error) error {
	lines := strings.Split(err.Error(), "\n")
	return errors.New(section + "." + strings.Join(lines, "\n"+section+"."))
}
