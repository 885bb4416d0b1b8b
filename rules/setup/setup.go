// Package setup decides what has to be made before Drydock can work: what is wanted and what was found in, what is missing,
// what would make it and the commands that a person would type, out.
package setup

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/preflight"
)

// DefaultRetention is how long histories ought to be kept where they are the audit trail.
const DefaultRetention = 30 * day

// Kind says what an item is about.
type Kind string

// The kinds of items, in the order in which they are listed and made.
const (
	Temporal        Kind = "Temporal"
	Namespace       Kind = "Namespace"
	Retention       Kind = "Retention"
	SearchAttribute Kind = "SearchAttribute"
	Schedules       Kind = "Schedules"
	NexusEndpoint   Kind = "NexusEndpoint"
	Kubernetes      Kind = "Kubernetes"
	Permissions     Kind = "Permissions"
)

// State is how an item stands.
type State string

// The states. Made is what was missing and is there now; Optional is what is not there and not needed by this configuration.
const (
	Present  State = "present"
	Made     State = "made"
	Missing  State = "missing"
	Unknown  State = "unknown"
	Optional State = "optional"
)

// Fix is how an item is made.
type Fix string

// The fixes.
const (
	CreateNamespace  Fix = "create-namespace"
	RaiseRetention   Fix = "raise-retention"
	AddAttribute     Fix = "add-attribute"
	CreateEndpoint   Fix = "create-endpoint"
	ApplyPermissions Fix = "apply-permissions"
)

// Item is one thing that has to be there.
type Item struct {
	Kind Kind `json:"kind"`
	// Name distinguishes items of a kind: a search attribute, a part of the permissions.
	Name  string `json:"name,omitempty"`
	State State  `json:"state"`
	// Text says what is there, or what is missing.
	Text string `json:"text"`
	// Fix is what --apply does; empty if it cannot.
	Fix Fix `json:"fix,omitempty"`
	// Commands are those that a person types instead, in Temporal's or Kubernetes' own tools.
	Commands []string `json:"commands,omitempty"`
	// NextStep says what else a person can do.
	NextStep string `json:"nextStep,omitempty"`
	// Tried says why an attempt to make it failed.
	Tried string `json:"tried,omitempty"`
}

// Lacks reports whether something is missing, or cannot be checked, that Drydock needs for its configuration.
func (i Item) Lacks() bool { return i.State == Missing || i.State == Unknown }

// Report is what was found, and what there is to do.
type Report struct {
	// Address and Namespace say which Temporal this is, Version is its server's.
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	Version   string `json:"temporalServer,omitempty"`
	// Cloud: it is Temporal Cloud, which makes namespaces and search attributes by its own API only.
	Cloud bool `json:"temporalCloud,omitempty"`
	// Open: the server answered without credentials, so that everybody who can connect to it may do what the workers
	// may.
	Open bool `json:"openToEverybody,omitempty"`
	// Context, Server and Account say which Kubernetes was asked, and for whose permissions. They are empty if none was.
	Context string `json:"kubernetesContext,omitempty"`
	Server  string `json:"kubernetesServer,omitempty"`
	Account string `json:"account,omitempty"`
	Items   []Item `json:"items"`
	// Ready: nothing is missing.
	Ready bool `json:"ready"`
}

// Lacking are the items that are missing, or not known to be there.
func (r Report) Lacking() []Item {
	return slices.DeleteFunc(slices.Clone(r.Items), func(i Item) bool { return !i.Lacks() })
}

// Fixes are the fixes that are to be made, each once, in their order.
func (r Report) Fixes() []Fix {
	var fixes []Fix
	for _, i := range r.Items {
		if i.Fix != "" && !slices.Contains(fixes, i.Fix) {
			fixes = append(fixes, i.Fix)
		}
	}
	return fixes
}

// Names are the names of the items that a fix makes.
func (r Report) Names(fix Fix) []string {
	var names []string
	for _, i := range r.Items {
		if i.Fix == fix {
			names = append(names, i.Name)
		}
	}
	return names
}

// Commands are those of all that is missing, each once.
func (r Report) Commands() []string {
	var all []string
	for _, i := range r.Lacking() {
		for _, command := range i.Commands {
			if !slices.Contains(all, command) {
				all = append(all, command)
			}
		}
	}
	return all
}

// Uncommanded is what is missing, or could not be found out, and no command makes.
func (r Report) Uncommanded() []Item {
	return slices.DeleteFunc(r.Lacking(), func(i Item) bool { return len(i.Commands) > 0 })
}

// Wanted is what has to be there.
type Wanted struct {
	Retention time.Duration
	// Attributes are search attributes, all Keywords.
	Attributes []string
	// Queue is the task queue of the workers.
	Queue string
	// Endpoint is the Nexus endpoint by which the workers are called; empty if they are called by none.
	Endpoint string
	// Parts are the permissions, the base first.
	Parts []Part
	// Account is the user whom the manifests of the parts give them to.
	Account string
}

// Found is what there is.
type Found struct {
	Temporal Service
	// Cluster is nil if no Kubernetes was named.
	Cluster *Cluster
}

// Service is a Temporal server, with the namespace. What could not be found out has the reason in a field of its own.
type Service struct {
	Address, Namespace, Version string
	Cloud                       bool
	// Open: it answered a caller who showed no credentials.
	Open        bool
	Unreachable string
	// Advice says which settings to look at where it is not reachable, or does not let the namespace be looked at; empty if none fits.
	Advice string
	// Exists: the namespace is there; Undescribed says why it cannot be told.
	Exists      bool
	Retention   time.Duration
	Undescribed string
	// Attributes are the search attributes by name with their types.
	Attributes map[string]string
	Unlisted   string
	// Running says by the names of parts what runs that needs them, such as "2 health checks"; Uncounted why that is not known.
	Running   map[string]string
	Uncounted string
	// Recurring are Drydock's own schedules.
	Recurring   []Schedule
	Unscheduled string
	// Target is where the wanted Nexus endpoint leads; nil if it is not there. Unlooked says why that is not known.
	Target   *Target
	Unlooked string
}

// Target is where a Nexus endpoint leads. Other says what else than a task queue it is.
type Target struct{ Namespace, Queue, Other string }

// Schedule is that of a recurring plan.
type Schedule struct {
	Plan, Queue string
	Paused      bool
}

// Cluster is a Kubernetes cluster.
type Cluster struct {
	Context, Server, Version string
	// Account is the account whose permissions were checked.
	Account     string
	Unreachable string
	// Denied are, by the names of parts, the permissions that the account lacks; Unasked says why they are not known.
	Denied  map[string][]preflight.Need
	Unasked string
}

// Decide returns what is there, what is missing, and what creates it.
func Decide(w Wanted, f Found) Report {
	t := f.Temporal
	r := Report{Address: t.Address, Namespace: t.Namespace, Version: t.Version, Cloud: t.Cloud}
	r.Items = append(r.Items, temporal(t))
	if t.Unreachable == "" {
		r.Open = t.Open
		r.Items = append(r.Items, namespace(w, t))
		if t.Exists {
			r.Items = append(r.Items, retention(w, t))
		}
		r.Items = append(r.Items, attributes(w, t)...)
		r.Items = append(r.Items, schedules(w, t))
		if w.Endpoint != "" {
			r.Items = append(r.Items, endpoint(w, t))
		}
	}
	if f.Cluster != nil {
		r.Context, r.Server, r.Account = f.Cluster.Context, f.Cluster.Server, f.Cluster.Account
		r.Items = append(r.Items, cluster(*f.Cluster))
		if f.Cluster.Unreachable == "" {
			if t.Uncounted != "" {
				r.Items = append(r.Items, Item{Kind: Temporal, Name: "workflows", State: Unknown, Text: "what runs, and needs permissions, cannot be counted: " + t.Uncounted,
					NextStep: "Name with --with the parts of the permissions that are needed: health, profiles."})
			}
			w.Parts = neededBy(w.Parts, t.Running)
			r.Items = append(r.Items, permissions(w, *f.Cluster)...)
		}
	}
	r.Ready = len(r.Lacking()) == 0
	return r
}

// neededBy adds what runs to the reasons for which parts are needed.
func neededBy(parts []Part, running map[string]string) []Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if runs := running[p.Name]; runs != "" && p.Why == "" {
			parts[i].Why = runs + ", running"
		}
	}
	return parts
}

// After is the report once fixes were tried: what was to be made and is there is Made, and what failed says why.
func After(before, now Report, failed map[Fix]string) Report {
	now.Items = slices.Clone(now.Items)
	for i, item := range now.Items {
		at := slices.IndexFunc(before.Items, func(b Item) bool { return b.Kind == item.Kind && b.Name == item.Name })
		switch {
		case item.Lacks() && item.Fix != "":
			now.Items[i].Tried = failed[item.Fix]
		case item.State == Present && at >= 0 && before.Items[at].Fix != "":
			now.Items[i].State = Made
		}
	}
	return now
}

func cluster(c Cluster) Item {
	item := Item{Kind: Kubernetes, Name: c.Context, State: Present, Text: "reachable at " + c.Server}
	if c.Unreachable != "" {
		item.State, item.Text = Missing, c.Unreachable
		item.NextStep = "Name the cluster with --kubeconfig, KUBECONFIG or --context, or leave it out with --skip-kubernetes."
	} else if c.Version != "" {
		item.Text += ", " + c.Version
	}
	return item
}

// inDays is a duration as people say how long something is kept.
func inDays(d time.Duration) string {
	n := days(d)
	if time.Duration(n)*day != d {
		return period.Text(d)
	}
	return number.Of(n, "day")
}

const day = 24 * time.Hour

// days rounds up: no less is kept than is wanted.
func days(d time.Duration) int {
	return int((d + day - 1) / day)
}

// quoted is a word for a shell.
func quoted(word string) string {
	plain := !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/:", r))
	})
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// InNamespace reports whether a fix needs the namespace: without it nothing can be made there.
func (f Fix) InNamespace() bool {
	return f == RaiseRetention || f == AddAttribute || f == CreateEndpoint
}

// Does says in words what a fix does to what it is named for.
func (f Fix) Does(names []string) string {
	switch f {
	case CreateNamespace:
		return "creates namespace " + strings.Join(names, ", ")
	case RaiseRetention:
		return "raises the retention of the namespace"
	case AddAttribute:
		return "registers search attributes " + strings.Join(names, ", ")
	case CreateEndpoint:
		return "creates Nexus endpoint " + strings.Join(names, ", ")
	case ApplyPermissions:
		return "applies the manifests of permissions " + strings.Join(names, ", ")
	}
	return ""
}
