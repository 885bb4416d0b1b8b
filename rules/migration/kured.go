package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
)

// kured is the Kubernetes reboot daemon, as of v1.23: a DaemonSet, whose annotation is the lock that nodes reboot under.
type kured struct{ given Given }

var daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}

const (
	kuredLock = "weave.works/kured-node-lock"
	// kuredWants is on nodes that want to restart and on those that do, with --annotate-nodes.
	kuredWants = "weave.works/kured-reboot-in-progress"
	// wantsReboot is the label by which a plan finds what kured's sentinel finds.
	wantsReboot = "reboot-required"
	reboots     = "reboots"
)

func (kured) Lease() string { return "" }

func (kured) Reads() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{daemonSets}
}

// kuredFlags are what becomes of kured's flags. The others are about its own process.
var kuredFlags = map[string]translation{
	"reboot-sentinel":              without("label the nodes that want a restart, reboot-required=true: the plan selects by it, and what sets it takes it off"),
	"reboot-sentinel-command":      without("label the nodes that want a restart, reboot-required=true: the plan selects by it, and what sets it takes it off"),
	"period":                       to("drydock plan schedule --every: how often the plan runs"),
	"concurrency":                  to("strategy.maxParallel of the plan, and drydock limits for all that takes nodes out"),
	"lock-ttl":                     without("a slot has no time to live: a node that nobody declares done keeps it (readyTimeout, onReadyTimeout)"),
	"lock-release-delay":           to("strategy.pauseBetween of the plan"),
	"reboot-days":                  to("a window of the worker's configuration"),
	"start-time":                   to("a window of the worker's configuration"),
	"end-time":                     to("a window of the worker's configuration"),
	"time-zone":                    to("a window of the worker's configuration"),
	"blocking-pod-selector":        to("maintenance.waitForPodCompletion: the cordoned node waits for them"),
	"prometheus-url":               without("a check in the validation holds the node; drydock freeze stops everything"),
	"alert-filter-regexp":          without("the query of such a check"),
	"alert-filter-match-only":      without("the query of such a check"),
	"alert-firing-only":            without("the query of such a check"),
	"drain-timeout":                to("strategy.blockedAfter of the plan, with onBlocked skip: the node is given back and tried again, three times; without the flag kured waits for ever"),
	"drain-delay":                  without("a hook beforeCordon of the worker's configuration"),
	"drain-grace-period":           to("maintenance.drain.gracePeriodSeconds"),
	"drain-pod-selector":           to("maintenance.drain.podSelector"),
	"skip-wait-for-delete-timeout": to("maintenance.drain.skipWaitForDeleteTimeout"),
	"force-reboot":                 without("drain.escalation with bypassBudget or kill, which is recorded"),
	"reboot-command":               to("work of the worker's configuration: deploy/kubernetes/examples/reboot-job.yaml restarts a node"),
	"reboot-method":                to("work of the worker's configuration: deploy/kubernetes/examples/reboot-job.yaml restarts a node"),
	"reboot-signal":                to("work of the worker's configuration: deploy/kubernetes/examples/reboot-job.yaml restarts a node"),
	"reboot-delay":                 to("a sleep in that Job"),
	"notify-url":                   to("channels of the worker's configuration"),
	"slack-hook-url":               to("channels of the worker's configuration"),
	"message-template-drain":       without("messages have Drydock's words"),
	"message-template-reboot":      without("messages have Drydock's words"),
	"message-template-uncordon":    without("messages have Drydock's words"),
	"annotate-nodes":               to("the label drydock.dev/phase and the annotation drydock.dev/holders"),
	"pre-reboot-node-labels":       to("the label drydock.dev/phase"),
	"post-reboot-node-labels":      to("the label drydock.dev/phase"),
	"prefer-no-schedule-taint":     without("none: pods may move to nodes that come later"),
}

// secretFlags may have secrets in their values.
var secretFlags = []string{"notify-url", "slack-hook-url", "prometheus-url", "reboot-command", "reboot-sentinel-command"}

// daemon is a kured of the cluster.
type daemon struct {
	of    appsv1.DaemonSet
	image string
	flags map[string][]string
}

// daemons are the DaemonSets with a container that runs kured.
func (kured) daemons(c Cluster) (all []daemon, wrong []error) {
	for i := range c.Objects[daemonSets] {
		of, err := as[appsv1.DaemonSet](c.Objects[daemonSets][i].Object)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("the DaemonSet %s: %w", named(&c.Objects[daemonSets][i]), err))
			continue
		}
		for _, container := range of.Spec.Template.Spec.Containers {
			if isKured(container) {
				all = append(all, daemon{of, container.Image, flagsOf(container)})
				break
			}
		}
	}
	return all, wrong
}

func isKured(c corev1.Container) bool {
	image, _, _ := strings.Cut(c.Image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image == "kured" || slices.ContainsFunc(c.Command, func(part string) bool { return strings.HasSuffix(part, "/kured") })
}

// flagsOf are the flags of a container: --name=value, --name value, and KURED_NAME, which counts more.
func flagsOf(c corev1.Container) map[string][]string {
	flags := map[string][]string{}
	words := append(slices.Clone(c.Command), c.Args...)
	for i, word := range words {
		name, is := strings.CutPrefix(word, "--")
		if !is {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		switch {
		case given:
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			value = words[i+1]
		default:
			value = "true"
		}
		flags[name] = append(flags[name], strings.Trim(value, `"`))
	}
	for _, e := range c.Env {
		if name, is := strings.CutPrefix(e.Name, "KURED_"); is && e.Value != "" {
			flags[strings.ToLower(strings.ReplaceAll(name, "_", "-"))] = []string{e.Value}
		}
	}
	return flags
}

// flag is the last value of a flag.
func (d daemon) flag(name string) string {
	if values := d.flags[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

func (d daemon) name() string { return d.of.Namespace + "/" + d.of.Name }

// runsOn reports whether its pods may run on a node, by their node selector.
func (d daemon) runsOn(n *corev1.Node) bool {
	return labels.SelectorFromSet(d.of.Spec.Template.Spec.NodeSelector).Matches(labels.Set(n.Labels))
}

// concurrency is how many nodes restart at a time.
func (d daemon) concurrency() int {
	n, err := strconv.Atoi(d.flag("concurrency"))
	if err != nil || n < 1 {
		return 1 // kured's default, and what it does with less
	}
	return n
}

func (d daemon) hours() hours {
	var days []string
	for _, list := range d.flags["reboot-days"] {
		days = append(days, strings.Split(list, ",")...)
	}
	return hours{days: days, start: d.flag("start-time"), end: d.flag("end-time"), zone: d.flag("time-zone")}
}

func (k kured) Report(c Cluster) Report {
	r := Report{From: Kured, Claims: k.Claims(c)}
	all, wrong := k.daemons(c)
	for _, err := range wrong {
		r.Problems = append(r.Problems, err.Error())
	}
	if len(all) == 0 {
		r.Found = append(r.Found, "no DaemonSet that runs kured")
		r.Problems = append(r.Problems, "No DaemonSet has a container with the image or the program kured. "+c.Unread[daemonSets])
	}
	r.Take = []string{"# Put the windows and the work into the worker's configuration, and have what you like set reboot-required=true on nodes."}
	var creates []string
	config := map[string]any{}
	for _, d := range all {
		name := reboots
		if len(all) > 1 {
			name += "-" + d.of.Namespace + "-" + d.of.Name
		}
		if k.report(&r, d, name, config) {
			r.Take = append(r.Take, "drydock plan create "+name+" --file "+name+".yaml --dry-run")
			creates = append(creates, "drydock plan create "+name+" --file "+name+".yaml --yes",
				"drydock plan schedule "+name+" --every "+d.every()+" --file "+name+".yaml --yes")
		}
		r.Take = append(r.Take, "# Remove kured once nobody holds its lock: it does not know Drydock's marks.",
			fmt.Sprintf("kubectl -n %s delete daemonset %s", d.of.Namespace, d.of.Name))
		r.Back = append(r.Back, "drydock plan schedule "+name+" --delete --yes",
			"# Wait until the plan has ended (drydock plan status "+name+"), or cancel it (drydock plan cancel "+name+"): nodes that are out come back.")
	}
	if len(config) > 0 {
		r.input("worker.yaml", "Part of the worker's configuration", config)
	}
	r.Take = append(r.Take, creates...)
	r.Back = append(r.Back, "# Apply kured's DaemonSet again.")
	return r
}

// every is how often the plan runs: kured's period, an hour where it has none.
func (d daemon) every() string {
	if wait, err := time.ParseDuration(d.flag("period")); err == nil && wait >= time.Minute {
		return period.Text(wait.Round(time.Minute))
	}
	return "1h"
}

// report says what becomes of a kured: of its flags, and as a plan of a name. It reports whether that plan is right.
func (k kured) report(r *Report, d daemon, name string, config map[string]any) bool {
	r.Found = append(r.Found, fmt.Sprintf("DaemonSet %s: %s on %s", d.name(), d.image, number.Of(int(d.of.Status.DesiredNumberScheduled), "node")))
	for _, flag := range slices.Sorted(maps.Keys(d.flags)) {
		value := bounds.Cut(strings.Join(d.flags[flag], ", "), maxValue)
		if slices.Contains(secretFlags, flag) {
			value = "(not shown)"
		}
		if becomes, known := kuredFlags[flag]; known {
			r.add(becomes, "--"+flag, value)
		}
	}
	if d.flag("annotate-nodes") != "true" {
		r.Problems = append(r.Problems, fmt.Sprintf("DaemonSet %s has no --annotate-nodes: only who holds its lock can be seen, not which nodes wait for it", d.name()))
	}
	maintenance := map[string]any{"work": "reboot", "drain": d.drain(), "validation": map[string]any{"newBootID": true}}
	fits := true
	switch blocking := d.flags["blocking-pod-selector"]; len(blocking) {
	case 0:
	case 1:
		maintenance["waitForPodCompletion"] = map[string]any{"podSelector": blocking[0]}
		r.Problems = append(r.Problems, fmt.Sprintf("%s: a node with a pod of %s stays cordoned, and keeps its slot, until that pod ends; kured leaves such a node as it is", d.name(), blocking[0]))
	default:
		fits = false
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %s of pods keep kured from a node, and a plan waits for the pods of one: give them a label that they share", d.name(), number.Of(len(blocking), "selector")))
	}
	input := map[string]any{"selector": wantsReboot + "=true", "reason": "updates want a restart", "strategy": d.strategy(), "maintenance": maintenance}
	part(config, "work")["reboot"] = map[string]any{
		"job":     map[string]any{"templateFile": "/etc/drydock/reboot-job.yaml", "namespace": "drydock-work"},
		"success": "newBootID", "deadline": "20m",
	}
	w, note, err := d.hours().window()
	switch {
	case err != nil:
		fits = false
		r.Problems = append(r.Problems, fmt.Sprintf("%s: its days and times: %v", d.name(), err))
	case w != nil:
		input["windows"] = []string{name}
		part(config, "windows")[name] = w
		if note != "" {
			r.add(without(note), "--start-time, --end-time", "")
		}
	}
	return r.plan(name, "drydock plan create "+name+" --file "+name+".yaml", input) && fits
}

// drain is kured's drain, which loses the data of emptyDir volumes and pods without a controller, and leaves no pod alone.
func (d daemon) drain() map[string]any {
	drain := map[string]any{"protectedFor": "0s", "force": true, "deleteEmptyDir": true}
	if s := d.flag("drain-pod-selector"); s != "" {
		drain["podSelector"] = s
	}
	if n, err := strconv.Atoi(d.flag("drain-grace-period")); err == nil && n >= 0 {
		drain["gracePeriodSeconds"] = n
	}
	if n, err := strconv.Atoi(d.flag("skip-wait-for-delete-timeout")); err == nil && n > 0 {
		drain["skipWaitForDeleteTimeout"] = fmt.Sprintf("%ds", n)
	}
	return drain
}

// strategy is the pace of a plan.
func (d daemon) strategy() map[string]any {
	strategy := map[string]any{"maxParallel": d.concurrency(), "maxFailures": 0, "onBlocked": plan.SkipBlocked}
	if delay, err := time.ParseDuration(d.flag("lock-release-delay")); err == nil && delay > 0 {
		strategy["pauseBetween"] = period.Text(delay)
	}
	if timeout, err := time.ParseDuration(d.flag("drain-timeout")); err == nil && timeout > 0 {
		strategy["blockedAfter"] = period.Text(timeout)
	}
	return strategy
}

func (k kured) Claims(c Cluster) (claims []Claim) {
	all, _ := k.daemons(c) // the report says what cannot be read
	holders := map[string]bool{}
	for _, d := range all {
		lock := d.of.Annotations[cmp.Or(d.flag("lock-annotation"), kuredLock)]
		for _, held := range locks(lock, c.At) {
			holders[held.NodeID] = true
			becomes := "left alone: remove kured once the node is back"
			if held.Metadata.Unschedulable {
				becomes += "; it was cordoned before, and stays so"
			}
			claims = append(claims, Claim{Node: held.NodeID, For: d.name(), Asked: held.Created.UTC(), State: "holds the lock", Out: true, Becomes: becomes})
		}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		wants, is := n.Annotations[kuredWants]
		of := slices.IndexFunc(all, func(d daemon) bool { return d.runsOn(n) })
		if !is || holders[n.Name] || of < 0 {
			continue
		}
		claim := Claim{Node: n.Name, For: all[of].name(), State: "wants a restart", Becomes: "label it " + wantsReboot + "=true: the plan takes it"}
		if since, err := time.Parse(time.RFC3339, wants); err == nil {
			claim.Asked = since.UTC()
		}
		claims = append(claims, claim)
	}
	return claims
}

// lockOf is who holds kured's lock.
type lockOf struct {
	NodeID   string `json:"nodeID"`
	Metadata struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"metadata"`
	Created time.Time     `json:"created"`
	TTL     time.Duration `json:"TTL"`
}

// locks are those who hold a lock, of one holder or of several. One that has expired is held by nobody.
func locks(annotation string, now time.Time) (held []lockOf) {
	var several struct {
		Locks []lockOf `json:"locks"`
	}
	var one lockOf
	if json.Unmarshal([]byte(annotation), &several) == nil {
		held = several.Locks
	}
	if json.Unmarshal([]byte(annotation), &one) == nil && one.NodeID != "" {
		held = append(held, one)
	}
	return slices.DeleteFunc(held, func(l lockOf) bool { return l.TTL > 0 && now.After(l.Created.Add(l.TTL)) })
}

func (k kured) Refusals(c Cluster, asked []Claim) (map[string]string, error) {
	all, _ := k.daemons(c)
	s := slots{limits: schedule.Limits{MaxParallel: schedule.Unlimited()}, paces: map[string]int{}, windows: map[string]window.Window{}, opens: map[string]string{}}
	for _, d := range all {
		s.paces[d.name()] = d.concurrency()
		w, _, err := d.hours().window()
		if err != nil {
			return nil, fmt.Errorf("the DaemonSet %s: its days and times: %w", d.name(), err)
		}
		if w != nil {
			s.windows[d.name()], s.opens[d.name()] = *w, d.name()
		}
	}
	return s.over(k.given.Limits).refusals(c, k.Claims(c), asked)
}
