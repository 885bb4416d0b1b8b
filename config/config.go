// Package config is the worker's configuration: one YAML file with defaults, the environment and flags over it.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
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
//
// The comments of its fields are their documentation everywhere: in docs/reference, in the JSON schema, in `drydock explain config`, and,
// up to the first full stop, in the help of the flag of drydock-worker that the tag flag names. The tag env names a variable of the
// environment.
type Config struct {
	// Cluster is the prefix of workflow IDs and of the task queue, where a Temporal namespace serves several clusters.
	Cluster string `json:"cluster" env:"DRYDOCK_CLUSTER" flag:"cluster"`
	// TaskQueue is the Temporal task queue that the worker polls.
	TaskQueue string `json:"taskQueue" env:"DRYDOCK_TASK_QUEUE" flag:"task-queue"`
	// Scheduler are limits on how many nodes may be out of service, used when [the scheduler](#the-scheduler) is first started: from then on
	// `drydock limits set` counts.
	Scheduler Scheduler `json:"scheduler"`
	// Defaults are those of maintenances: any field of [their input](#a-maintenances-input) but those that identify one (`node`, `requestor`,
	// `additionalRequestors`, `lockstep`, `remediation`). They may name only channels, checks, hooks, work and windows that the file has.
	Defaults json.RawMessage `json:"defaults,omitempty"`
	// Policy are rules that no maintenance may break, whatever its input says: see [policy and quotas](#policy-and-quotas).
	Policy []policy.Rule `json:"policy,omitempty"`
	// Quotas are what a requestor may ask for and hold, used when the scheduler is first started: see [policy and
	// quotas](#policy-and-quotas).
	Quotas schedule.Quotas `json:"quotas,omitzero"`
	// Windows are when nodes may be taken out of service, by the names that limits and maintenances give: see [windows](#windows). There may
	// be 50.
	Windows map[string]window.Window `json:"windows,omitempty"`
	// Channels are who is sent what happens, by the names that maintenances give, each of one kind: see [channels](#channels).
	Channels notify.Config `json:"channels,omitempty"`
	// Checks are what validates a node, by the names that maintenances give, each one of `http`, `prometheus` and `job`: see
	// [checks](#checks).
	Checks checks.Checks `json:"checks,omitempty"`
	// Prometheus is the server of the [checks](#checks) that are queries.
	Prometheus checks.Section `json:"prometheus,omitzero"`
	// Hooks are what is called around a maintenance, by the names that maintenances give, each one of `http`, `job` and `signal`: see
	// [hooks](#hooks).
	Hooks checks.Hooks `json:"hooks,omitempty"`
	// Work is what is done to a node that is Ready, by the names that maintenances give, each one of `http`, `job` and `signal`: see
	// [work](#work).
	Work checks.Works `json:"work,omitempty"`
	// Outbound bounds where the worker calls.
	Outbound Outbound `json:"outbound,omitzero"`
	// HealthChecks say which nodes are ill and what is done about it, by name: see [health
	// checks](#health-checks-of-the-configuration). There may be 50.
	HealthChecks HealthChecks `json:"healthChecks,omitempty"`
	// Health is what holds for all health checks of the cluster.
	Health Health `json:"health,omitzero"`
	// Profiles are the profiles of SAP's maintenance-controller: see [profiles](#profiles).
	Profiles Profiles `json:"profiles,omitzero"`
	// Nexus offers maintenances to workflows of other namespaces and in other languages: see [Nexus](../tasks/workflows.md#other-namespaces-and-languages-nexus).
	Nexus Nexus `json:"nexus,omitzero"`
	// Page is a web page with what goes on in the cluster: see [the page](../tasks/page.md).
	Page Page `json:"page,omitzero"`
	// Audit says where the records of ended maintenances are written: see [audit](#audit).
	Audit audit.Config `json:"audit,omitzero"`
	// Kubernetes is what the worker asks of the API server.
	Kubernetes Kubernetes `json:"kubernetes"`
	// Versioning makes the worker one version of a Temporal Worker Deployment: see [rolling out a new worker](#rolling-out-a-new-worker).
	Versioning Versioning `json:"versioning"`
	// Listen is the address of `/metrics` and of the probes `/healthz` and `/readyz`; `""` in the file is none.
	Listen string `json:"listen" env:"DRYDOCK_LISTEN" flag:"listen"`
	// AdminListen is the loopback address of `/loglevel`; `""` in the file is none.
	AdminListen string `json:"adminListen" env:"DRYDOCK_ADMIN_LISTEN" flag:"admin-listen"`
	// Log is how the worker logs.
	Log Log `json:"log"`
	// Metrics bounds what metrics cost, and says who may read them.
	Metrics Metrics `json:"metrics"`
}

// Scheduler are the limits in which nodes may be taken out of service, and what becomes of orphans.
type Scheduler struct {
	schedule.Limits
	// OnOrphan is what becomes of the node of a maintenance that was terminated: `release` releases it, `report` reports it and leaves it as it
	// is. Its slot is taken back either way.
	OnOrphan string `json:"onOrphan" jsonschema:"enum=release,enum=report"`
}

// Kubernetes bounds what one worker asks of the API server.
type Kubernetes struct {
	// Kubeconfig is the kubeconfig file; if absent, it is `KUBECONFIG`, `~/.kube/config`, or in a cluster the account of the pod.
	Kubeconfig string `json:"kubeconfig,omitempty" flag:"kubeconfig"`
	// Context is the context of the kubeconfig file; if absent, its current one.
	Context string `json:"context,omitempty"`
	// QPS is how many requests a second one worker sends to the API server.
	QPS float32 `json:"qps" jsonschema:"exclusiveMinimum=0" env:"DRYDOCK_KUBERNETES_QPS"`
	// Burst is how many requests one worker may send at once.
	Burst int `json:"burst" jsonschema:"minimum=1" env:"DRYDOCK_KUBERNETES_BURST"`
	// EvictionsPerSecond is how many evictions a second one worker sends at most, over all its drains together; 0 is unlimited.
	EvictionsPerSecond float64 `json:"evictionsPerSecond" jsonschema:"minimum=0" env:"DRYDOCK_EVICTIONS_PER_SECOND"`
	// Events records Kubernetes Events on nodes.
	Events bool `json:"events"`
	// PodEvents records a Kubernetes Event on each pod that is evicted.
	PodEvents bool `json:"podEvents"`
	// NodeConditions shows the [conditions of a node's lifecycle](#node-conditions) (KEP-5683) on nodes under maintenance. It costs a read of
	// the node, and a write to its status, for each step of a maintenance.
	NodeConditions bool `json:"nodeConditions"`
	// Marks tell [other remediators](#marks-of-other-remediators) to leave nodes under maintenance alone.
	Marks Marks `json:"marks"`
	// VerifiedObjects has rules and records take the users for verified whom Kubernetes objects name: who asked for a maintenance, and who
	// approved it. It needs the [admission policies](../tasks/kubectl.md#who-may-ask) of the bridge: without them an object names whom its
	// writer likes.
	VerifiedObjects bool `json:"verifiedObjects"`
	// PodUID is that of the pod the worker runs in. Only the environment has it.
	PodUID types.UID `json:"-" env:"DRYDOCK_POD_UID"`
}

// Marks are those that other remediators know.
type Marks struct {
	// Medik8s labels the node for NodeHealthCheck and its remediators.
	Medik8s bool `json:"medik8s"`
	// ClusterAPI annotates the node's Machine.
	ClusterAPI bool `json:"clusterAPI"`
}

// Versioning makes a worker one version of a Temporal Worker Deployment, so that an operator decides which build takes
// new work; running maintenances move to it at their next step.
type Versioning struct {
	// Deployment is the name of the Worker Deployment; if absent, workers are not versioned.
	Deployment string `json:"deployment" env:"DRYDOCK_DEPLOYMENT"`
	// BuildID identifies the build; if absent, the binary's version does.
	BuildID string `json:"buildID" env:"DRYDOCK_BUILD_ID"`
}

// Log is how the worker logs.
type Log struct {
	// Level is the least level that is logged.
	Level string `json:"level" jsonschema:"enum=debug,enum=info,enum=warn,enum=error" env:"DRYDOCK_LOG_LEVEL" flag:"log-level"`
	// Format is the form of the lines.
	Format string `json:"format" jsonschema:"enum=text,enum=json" env:"DRYDOCK_LOG_FORMAT" flag:"log-format"`
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
	return c, c.put("env", getenv)
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
	problems = append(problems, c.Nexus.validate()...)
	problems = append(problems, c.Page.validate()...)
	_, err = c.Outbound.nodeAddresses()
	problems = append(problems, err)
	problems = append(problems, c.Kubernetes.validate()...)
	problems = append(problems, c.Versioning.validate()...)
	problems = append(problems, c.Metrics.validate()...)
	if _, err := hostOf(c.Listen); c.Listen != "" && err != nil {
		wrong("listen", "%q: want host:port with a port up to 65535, or empty for none", c.Listen)
	}
	if host, err := hostOf(c.AdminListen); c.AdminListen != "" && (err != nil || !outbound.IsLoopback(host)) {
		wrong("adminListen", "%q: want a loopback address such as 127.0.0.1:8081, or empty for none: anyone who reaches it may change the log level", c.AdminListen)
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
