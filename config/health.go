package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/health"
)

// HealthChecks are health checks as the file has them, by name. A check reads its specification itself when it begins, as one
// that is started by hand does.
type HealthChecks map[string]json.RawMessage

// Health is what holds for all health checks of the cluster.
type Health struct {
	// LeaseNamespace is the namespace of the Leases of nodes, by which remediators and maintenances of medik8s keep out of each other's way.
	LeaseNamespace string `json:"leaseNamespace,omitempty" jsonschema:"default=medik8s-leases"`
	// MachineHealthChecks is what becomes of a check whose nodes a MachineHealthCheck has too: with `respect` it is Disabled, with `ignore` it
	// goes on.
	MachineHealthChecks string `json:"machineHealthChecks,omitempty" jsonschema:"enum=respect,enum=ignore"`
	// Upgrades are conditions of objects by which the cluster upgrades, at most 10; the worker's account needs `get` on them. OpenShift's
	// ClusterVersion is looked at wherever it is served.
	Upgrades []UpgradeSign `json:"upgrades,omitempty" jsonschema:"maxItems=10"`
	// Etcd is where etcd's PodDisruptionBudget is, for the checks of the file that do not say it themselves.
	Etcd *health.Etcd `json:"etcd,omitempty"`
	// ControlPlane says when control-plane nodes are remediated, for the checks of the file that do not say it themselves.
	ControlPlane *health.ControlPlane `json:"controlPlane,omitempty"`
}

// What becomes of a check whose nodes a MachineHealthCheck has too.
const (
	RespectMachineHealthChecks = "respect"
	IgnoreMachineHealthChecks  = "ignore"
)

// UpgradeSign is a condition of an object: while it has the status, the cluster upgrades.
type UpgradeSign struct {
	// APIVersion is the API version of the object.
	APIVersion string `json:"apiVersion" jsonschema:"required"`
	// Kind is the kind of the object.
	Kind string `json:"kind" jsonschema:"required"`
	// Namespace is the namespace of the object; if absent, it has none.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object.
	Name string `json:"name" jsonschema:"required"`
	// Type is the type of the condition.
	Type string `json:"type" jsonschema:"required"`
	// Status is the one in which the condition says that the cluster upgrades.
	Status string `json:"status,omitempty" jsonschema:"default=True"`
}

const (
	// maxHealthChecks bounds what the worker looks after, and maxUpgrades what each look for an upgrade costs.
	maxHealthChecks = 50
	maxUpgrades     = 10
)

// HealthSpec is the specification of a configured check, as the check is given it.
func (c Config) HealthSpec(name string) (json.RawMessage, error) {
	given := c.HealthChecks[name]
	s, err := health.Decode(given)
	if err != nil {
		return nil, err
	}
	defaults := map[string]any{}
	if s.Etcd == nil && c.Health.Etcd != nil {
		defaults["etcd"] = c.Health.Etcd
	}
	if s.ControlPlane == nil && c.Health.ControlPlane != nil {
		defaults["controlPlane"] = c.Health.ControlPlane
	}
	if len(defaults) == 0 {
		return given, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(given, &fields); err != nil {
		return nil, err
	}
	for name, value := range defaults {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// checkHealth checks the health checks, and that what they name is configured.
func (c Config) checkHealth() []error {
	problems := c.Health.validate()
	if len(c.HealthChecks) > maxHealthChecks {
		problems = append(problems, fmt.Errorf("healthChecks: has %d: want %d at most", len(c.HealthChecks), maxHealthChecks))
	}
	for _, name := range slices.Sorted(maps.Keys(c.HealthChecks)) {
		if err := health.CheckName(name); err != nil {
			problems = append(problems, fmt.Errorf("healthChecks: %w", err))
		}
		s, err := health.Decode(c.HealthChecks[name])
		if err != nil {
			problems = append(problems, prefixed("healthChecks."+name, err))
			continue
		}
		if s.Object != nil {
			problems = append(problems, fmt.Errorf("healthChecks.%s.object: Drydock alone sets it: leave it out", name))
		}
		problems = append(problems, c.knownToHealth("healthChecks."+name, s)...)
	}
	return problems
}

// knownToHealth refuses names that a check would not find.
func (c Config) knownToHealth(field string, s health.Spec) []error {
	var problems []error
	if s.Notify != nil {
		problems = absent(field+".notify", "channel", "channels", *s.Notify, c.Channels)
	}
	if s.Maintenance != nil {
		problems = append(problems, c.knownToRepair(field+".maintenance", *s.Maintenance)...)
	}
	for i, step := range s.EscalatingRemediations {
		if step.Maintenance != nil {
			problems = append(problems, c.knownToRepair(fmt.Sprintf("%s.escalatingRemediations[%d].maintenance", field, i), *step.Maintenance)...)
		}
	}
	return problems
}

// knownToRepair is the same for the maintenance of a step.
func (c Config) knownToRepair(field string, r health.Repair) []error {
	var given struct {
		Work       string   `json:"work"`
		Notify     []string `json:"notify"`
		Windows    []string `json:"windows"`
		Validation struct {
			Checks []string `json:"checks"`
		} `json:"validation"`
	}
	// What is of another type is left out, and health.Decode has refused it.
	_ = json.Unmarshal(r.Input, &given)
	at := field + ".input."
	problems := absent(at+"notify", "channel", "channels", given.Notify, c.Channels)
	problems = append(problems, absent(at+"windows", "window", "windows", given.Windows, c.Windows)...)
	problems = append(problems, absent(at+"validation.checks", "check", "checks", given.Validation.Checks, c.Checks)...)
	if given.Work != "" {
		problems = append(problems, absent(at+"work", "work", "work", []string{given.Work}, c.Work)...)
	}
	return problems
}

// absent has a line for each name that a section has not.
func absent[V any](field, kind, section string, names []string, have map[string]V) []error {
	var problems []error
	for _, name := range names {
		if _, there := have[name]; !there {
			problems = append(problems, fmt.Errorf("%s: there is no %s %q in %s, %s", field, kind, name, section, known(have)))
		}
	}
	return problems
}

func (h Health) validate() []error {
	var problems []error
	wrong := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("health."+field+": "+format, args...))
	}
	if h.LeaseNamespace != "" {
		if why := validation.IsDNS1123Label(h.LeaseNamespace); len(why) > 0 {
			wrong("leaseNamespace", "%.63q: %s", h.LeaseNamespace, strings.Join(why, "; "))
		}
	}
	if m := h.MachineHealthChecks; m != "" && m != RespectMachineHealthChecks && m != IgnoreMachineHealthChecks {
		wrong("machineHealthChecks", "%.40q is not one of %s, %s", m, RespectMachineHealthChecks, IgnoreMachineHealthChecks)
	}
	if len(h.Upgrades) > maxUpgrades {
		wrong("upgrades", "has %d: want %d at most", len(h.Upgrades), maxUpgrades)
	}
	for i, sign := range h.Upgrades {
		for _, field := range []struct{ name, value string }{
			{"apiVersion", sign.APIVersion}, {"kind", sign.Kind}, {"name", sign.Name}, {"type", sign.Type},
		} {
			if field.value == "" {
				wrong(fmt.Sprintf("upgrades[%d].%s", i, field.name), "is missing")
			}
		}
	}
	if h.Etcd != nil && h.Etcd.Namespace == "" {
		wrong("etcd.namespace", "is missing")
	}
	if p := h.ControlPlane; p != nil && p.Allow != health.AllowHealthy && p.Allow != health.AllowAlways {
		wrong("controlPlane.allow", "%.40q is not one of %s, %s", p.Allow, health.AllowHealthy, health.AllowAlways)
	}
	return problems
}
