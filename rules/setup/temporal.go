package setup

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
)

func temporal(t Service) Item {
	item := Item{Kind: Temporal, State: Present, Text: "reachable at " + t.Address}
	switch {
	case t.Unreachable != "":
		item.State, item.Text = Missing, t.Unreachable
		item.NextStep = cmp.Or(t.Advice, "Set its address with --address or TEMPORAL_ADDRESS; TLS and API keys are the environment's too (docs/tasks/temporal.md).")
	case t.Cloud:
		item.Text += " (Temporal Cloud)"
	case t.Version != "":
		item.Text += ", server " + t.Version
	}
	return item
}

func namespace(w Wanted, t Service) Item {
	item := Item{Kind: Namespace, Name: t.Namespace, State: Present, Text: "is there"}
	switch {
	case t.Exists:
		return item
	case t.Undescribed != "":
		item.State, item.Text = Unknown, "cannot be looked at: "+t.Undescribed
		if t.Advice != "" && !t.Cloud {
			item.NextStep = t.Advice
			return item
		}
	default:
		item.State, item.Text = Missing, "is not there"
	}
	if t.Cloud {
		item.NextStep = strings.TrimSpace(t.Advice + " Temporal Cloud makes namespaces by its own API, and a namespace's name there ends with " +
			"the account's: see \"tcld namespace list\", or make one in the UI at https://cloud.temporal.io.")
		item.Commands = []string{fmt.Sprintf("tcld namespace create --namespace %s --retention-days %d --region REGION --auth-method api_key",
			quoted(beforeAccount(t.Namespace)), days(w.Retention))}
		return item
	}
	if item.State == Missing {
		item.Fix = CreateNamespace
	}
	item.Commands = []string{fmt.Sprintf("temporal operator namespace create --namespace %s --retention %dd", quoted(t.Namespace), days(w.Retention))}
	return item
}

func retention(w Wanted, t Service) Item {
	item := Item{Kind: Retention, State: Present, Text: "histories are kept for " + inDays(t.Retention)}
	if t.Retention >= w.Retention {
		return item
	}
	item.State = Missing
	item.Text += ", and are to be kept for " + inDays(w.Retention)
	if t.Cloud {
		item.Commands = []string{fmt.Sprintf("tcld namespace retention set --namespace %s --retention-days %d", quoted(t.Namespace), days(w.Retention))}
		return item
	}
	item.Fix = RaiseRetention
	item.Commands = []string{fmt.Sprintf("temporal operator namespace update --namespace %s --retention %dd", quoted(t.Namespace), days(w.Retention))}
	return item
}

func attributes(w Wanted, t Service) []Item {
	var items []Item
	for _, name := range w.Attributes {
		item := Item{Kind: SearchAttribute, Name: name, State: Present, Text: "is there"}
		kind, has := t.Attributes[name]
		switch {
		case has && kind == keyword:
			items = append(items, item)
			continue
		case has:
			item.State, item.Text = Missing, fmt.Sprintf("is there as %s, and %s is wanted", kind, keyword)
			item.NextStep = "A type cannot be changed: remove it where nothing else uses it, or rename it, and add it anew."
			item.Commands = []string{fmt.Sprintf("temporal operator search-attribute remove --namespace %s --name %s --yes", quoted(t.Namespace), name)}
		case t.Unlisted != "":
			item.State, item.Text = Unknown, "cannot be looked at: "+t.Unlisted
		default:
			item.State, item.Text = Missing, "is not there"
		}
		if item.State == Missing && !has && !t.Cloud {
			item.Fix = AddAttribute
		}
		items = append(items, item)
	}
	addCommand(t, items)
	return items
}

const keyword = "Keyword"

// addCommand gives the items that lack the one command that adds them all.
func addCommand(t Service, items []Item) {
	command := "temporal operator search-attribute create --namespace " + quoted(t.Namespace)
	each := " --name %s --type " + keyword
	if t.Cloud {
		command, each = "tcld namespace search-attributes add --namespace "+quoted(t.Namespace), " --search-attribute %s="+keyword
	}
	for _, i := range items {
		if i.Lacks() {
			command += fmt.Sprintf(each, i.Name)
		}
	}
	for at, i := range items {
		if i.Lacks() {
			items[at].Commands = append(items[at].Commands, command)
		}
	}
}

func schedules(w Wanted, t Service) Item {
	item := Item{Kind: Schedules, State: Present, Text: "the namespace takes schedules; there are no recurring plans"}
	var names, lost []string
	for _, s := range t.Recurring {
		name := s.Plan
		if s.Paused {
			name += " (paused)"
		}
		names = append(names, name)
		if s.Queue != w.Queue {
			lost = append(lost, fmt.Sprintf("%s (task queue %s)", s.Plan, s.Queue))
		}
	}
	switch {
	case !t.Exists && t.Undescribed == "":
		item.State, item.Text = Optional, "none: the namespace is not there yet"
	case t.Unscheduled != "":
		item.State, item.Text = Unknown, "cannot be looked at, and recurring plans need them: "+t.Unscheduled
	case len(lost) > 0:
		item.State = Missing
		item.Text = fmt.Sprintf("runs of these recurring plans begin on a task queue that is not the workers' (%s): %s", w.Queue, strings.Join(lost, ", "))
		item.NextStep = `Have their plans recur anew: "drydock plan schedule NAME" with --cron or --every; or name the queue that is meant (--task-queue, --cluster).`
	case len(names) > 0:
		item.Text = "recurring plans: " + strings.Join(names, ", ")
	}
	return item
}

// endpoint is the Nexus endpoint by which the workers are called.
func endpoint(w Wanted, t Service) Item {
	item := Item{Kind: NexusEndpoint, Name: w.Endpoint, State: Present, Text: fmt.Sprintf("leads to task queue %s of namespace %s", w.Queue, t.Namespace)}
	if t.Unlooked == "" && t.Target != nil {
		if *t.Target != (Target{Namespace: t.Namespace, Queue: w.Queue}) {
			item.State = Missing
			item.Text = "leads to " + cmp.Or(t.Target.Other, fmt.Sprintf("task queue %s of namespace %s", t.Target.Queue, t.Target.Namespace)) + ", not to the workers"
			item.NextStep = "Name another endpoint in nexus.endpoint of the worker's configuration, or have this one lead to the workers."
			item.Commands = []string{fmt.Sprintf("temporal operator nexus endpoint update --name %s --target-namespace %s --target-task-queue %s",
				quoted(w.Endpoint), quoted(t.Namespace), quoted(w.Queue))}
		}
		return item
	}
	item.State, item.Text = Missing, "is not there"
	if t.Unlooked != "" {
		item.State, item.Text = Unknown, "cannot be looked at: "+t.Unlooked
	}
	if t.Cloud {
		item.Commands = []string{fmt.Sprintf("tcld nexus endpoint create --name %s --target-namespace %s --target-task-queue %s --allow-namespace CALLERS",
			quoted(w.Endpoint), quoted(t.Namespace), quoted(w.Queue))}
		return item
	}
	if item.State == Missing {
		item.Fix = CreateEndpoint
	}
	item.Commands = []string{fmt.Sprintf("temporal operator nexus endpoint create --name %s --target-namespace %s --target-task-queue %s",
		quoted(w.Endpoint), quoted(t.Namespace), quoted(w.Queue))}
	return item
}

// beforeAccount is a namespace's name in Temporal Cloud without the account's.
func beforeAccount(namespace string) string {
	name, _, _ := strings.Cut(namespace, ".")
	return cmp.Or(name, namespace)
}

// cloudHosts are where Temporal Cloud is.
var cloudHosts = []string{".tmprl.cloud", ".api.temporal.io"}

// cloudName is the form of a namespace's name in Temporal Cloud: its own, and the account's.
var cloudName = regexp.MustCompile(`^[a-z0-9-]+\.[a-z0-9]{5,}$`)

// IsCloud reports whether this is Temporal Cloud: by its address, or by a namespace's name where the server has refused what
// every other lets operators do.
func IsCloud(address, namespace string, refused bool) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return slices.ContainsFunc(cloudHosts, func(suffix string) bool { return strings.HasSuffix(host, suffix) }) ||
		refused && cloudName.MatchString(namespace)
}
