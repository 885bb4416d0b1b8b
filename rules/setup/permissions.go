package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

// Part is a set of permissions that is given as a whole.
type Part struct {
	// Name is "base", or that of a feature such as "volumes".
	Name string
	// File is the manifest that gives it, from the root of the source tree; empty if none does.
	File  string
	Needs []preflight.Need
	// Why says what needs it; empty if nothing that is configured does.
	Why string
}

// configuration is what of a worker's configuration decides which permissions it needs. The rest is the worker's to check.
type configuration struct {
	Defaults json.RawMessage             `json:"defaults"`
	Checks   map[string]action           `json:"checks"`
	Hooks    map[string]actionAndClosing `json:"hooks"`
	Work     map[string]action           `json:"work"`
	// HealthChecks are those that the worker makes sure of.
	HealthChecks map[string]healthCheck `json:"healthChecks"`
	Metrics      struct {
		Authentication string `json:"authentication"`
	} `json:"metrics"`
	Page struct {
		Authentication string `json:"authentication"`
	} `json:"page"`
	Profiles struct {
		File string `json:"file"`
	} `json:"profiles"`
	Kubernetes struct {
		NodeConditions bool `json:"nodeConditions"`
		Marks          struct {
			ClusterAPI bool `json:"clusterAPI"`
		} `json:"marks"`
	} `json:"kubernetes"`
}

type action struct {
	Job *struct {
		Namespace string `json:"namespace"`
	} `json:"job"`
}

type actionAndClosing struct {
	action
	Closing action `json:"closing"`
}

type healthCheck struct {
	Maintenance repair `json:"maintenance"`
	Escalating  []struct {
		Maintenance repair `json:"maintenance"`
	} `json:"escalatingRemediations"`
}

type repair struct {
	OutOfService bool `json:"outOfService"`
}

// movesVolumes reports whether a step waits until the node's volumes are detached.
func (h healthCheck) movesVolumes() bool {
	moves := h.Maintenance.OutOfService
	for _, step := range h.Escalating {
		moves = moves || step.Maintenance.OutOfService
	}
	return moves
}

// jobs is the part whose rules Jobs need in whichever namespace they run.
const jobs = "jobs"

// Require says which parts a worker's configuration needs, and adds those that no manifest gives: Jobs in namespaces of
// other names. with are the names of parts that are wanted besides.
func Require(parts []Part, config []byte, with []string) ([]Part, error) {
	var c configuration
	if len(config) > 0 {
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, fmt.Errorf("the worker's configuration: %w", err)
		}
	}
	parts = slices.Clone(parts)
	why := map[string]string{}
	if err := c.needsOfDefaults(parts, why); err != nil {
		return nil, err
	}
	if c.Kubernetes.NodeConditions {
		why["node-conditions"] = "kubernetes.nodeConditions"
	}
	if c.Kubernetes.Marks.ClusterAPI {
		why["cluster-api"] = "kubernetes.marks.clusterAPI"
	}
	if len(c.HealthChecks) > 0 {
		why["health"] = "healthChecks"
	}
	if c.Metrics.Authentication == "token" {
		why["metrics"] = "metrics.authentication"
	}
	if c.Page.Authentication == "token" {
		why["metrics"] = "page.authentication"
	}
	if c.Profiles.File != "" {
		why["profiles"] = "profiles.file"
	}
	for _, name := range slices.Sorted(maps.Keys(c.HealthChecks)) {
		if c.HealthChecks[name].movesVolumes() && why["volumes"] == "" {
			why["volumes"] = "healthChecks." + name
		}
	}
	parts = c.needsOfJobs(parts, why)
	for _, name := range with {
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.Name == name }) {
			return nil, fmt.Errorf("%q: want one of %s", name, strings.Join(names(parts), ", "))
		}
		if why[name] == "" {
			why[name] = "--with"
		}
	}
	for i := range parts {
		parts[i].Why = why[parts[i].Name]
	}
	if len(parts) > 0 {
		parts[0].Why = "every maintenance"
	}
	return parts, nil
}

func names(parts []Part) []string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.Name
	}
	return all
}

// needsOfDefaults finds the parts without which a maintenance that says nothing of its own would fail.
func (c configuration) needsOfDefaults(parts []Part, why map[string]string) error {
	if len(c.Defaults) == 0 {
		return nil
	}
	m, err := spec.Decode([]byte(`{"node": "any"}`), c.Defaults)
	if err != nil {
		return fmt.Errorf("the worker's configuration: defaults: %w", err)
	}
	if m.SLA != nil && m.SLA.Do != "" {
		m.Drain.Escalation = append(slices.Clone(m.Drain.Escalation), spec.Rung{After: m.SLA.After, Do: m.SLA.Do})
	}
	for _, need := range preflight.Needs(m.Judged(), m.WaitForPodCompletion != nil) {
		if at := slices.IndexFunc(parts, func(p Part) bool { return p.gives(need) }); at > 0 {
			why[parts[at].Name] = "defaults.drain"
		}
	}
	if m.Validation != nil && m.Validation.DaemonSets != "" {
		why["daemonsets"] = "defaults.validation.daemonSets"
	}
	return nil
}

// gives reports whether a part has a permission, in the namespace of the need or in all.
func (p Part) gives(need preflight.Need) bool {
	return slices.ContainsFunc(p.Needs, func(n preflight.Need) bool {
		return n.Verb == need.Verb && n.Group == need.Group && n.Resource == need.Resource && n.Subresource == need.Subresource &&
			(n.Namespace == "" || n.Namespace == need.Namespace)
	})
}

// needsOfJobs finds the namespaces in which Jobs run.
func (c configuration) needsOfJobs(parts []Part, why map[string]string) []Part {
	found := map[string]string{}
	look := func(field string, a action) {
		if a.Job != nil && found[a.Job.Namespace] == "" {
			found[a.Job.Namespace] = field + ".job"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
		look("checks."+name, c.Checks[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
		look("hooks."+name, c.Hooks[name].action)
		look("hooks."+name+".closing", c.Hooks[name].Closing)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Work)) {
		look("work."+name, c.Work[name])
	}
	ofJobs := slices.IndexFunc(parts, func(p Part) bool { return p.Name == jobs })
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		at := slices.IndexFunc(parts, func(p Part) bool { return len(p.Needs) > 0 && p.Needs[0].Namespace == namespace })
		switch {
		case at >= 0 && namespace != "":
			why[parts[at].Name] = found[namespace]
		case ofJobs >= 0:
			own := Part{Name: jobs + " in " + namespace}
			for _, need := range parts[ofJobs].Needs {
				need.Namespace = namespace
				own.Needs = append(own.Needs, need)
			}
			why[own.Name] = found[namespace]
			parts = append(parts, own)
		}
	}
	return parts
}

func permissions(w Wanted, c Cluster) []Item {
	if c.Unasked != "" {
		return []Item{{Kind: Permissions, State: Unknown, Text: "cannot be asked for: " + c.Unasked,
			NextStep: "Run it with the worker's own kubeconfig, or as somebody who may impersonate the account (--as)."}}
	}
	var items []Item
	for _, p := range w.Parts {
		denied := c.Denied[p.Name]
		item := Item{Kind: Permissions, Name: p.Name, State: Present, Text: "granted"}
		if p.Why != "" {
			item.Text += " (" + p.Why + ")"
		}
		if len(denied) > 0 {
			item.Text = "not granted: " + inWords(denied)
			lack(&item, w, c, p)
		}
		items = append(items, item)
	}
	return items
}

// lack says what becomes of permissions that are not there.
func lack(item *Item, w Wanted, c Cluster, p Part) {
	if p.Why == "" {
		item.State, item.Text = Optional, "not granted, and nothing that is configured needs it"
		return
	}
	item.State = Missing
	item.Text += " (needed for " + p.Why + ")"
	switch {
	case p.File == "":
		item.NextStep = "Give the account a Role like that of deploy/kubernetes/rbac-jobs.yaml in that namespace."
	case c.Account != w.Account:
		item.NextStep = fmt.Sprintf("The account is %s: give it what %s has, or ask for the account of that file: --as %s.", orUnknown(c.Account), p.File, w.Account)
	default:
		item.Fix = ApplyPermissions
		item.Commands = []string{"kubectl apply -f " + p.File}
		if c.Context != "" {
			item.Commands = []string{"kubectl --context " + quoted(c.Context) + " apply -f " + p.File}
		}
	}
}

func orUnknown(account string) string {
	if account == "" {
		return "not known"
	}
	return account
}

// inWords are permissions as the reference lists them: the verbs of each resource.
func inWords(needs []preflight.Need) string {
	var words []string
	last := ""
	for _, n := range needs {
		resource := n.Resource
		if n.Subresource != "" {
			resource += "/" + n.Subresource
		}
		if n.Group != "" {
			resource += " (" + n.Group + ")"
		}
		if n.Namespace != "" {
			resource = "in " + n.Namespace + " " + resource
		}
		if resource == last {
			words[len(words)-1] += ", " + n.Verb
			continue
		}
		words, last = append(words, resource+" "+n.Verb), resource
	}
	return strings.Join(words, "; ")
}
