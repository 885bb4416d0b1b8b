package migration

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
)

// upgradeController is Rancher's system-upgrade-controller: each of its Plans becomes a plan of Drydock with a Job as its work.
type upgradeController struct{ given Given }

var upgradePlans = schema.GroupVersionResource{Group: "upgrade.cattle.io", Version: "v1", Resource: "plans"}

// donePrefix and a plan's name are the label of the nodes that are through, with the plan's hash, or "disabled".
const donePrefix = "plan.upgrade.cattle.io/"

func (upgradeController) Lease() string { return "" }

func (upgradeController) Reads() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{upgradePlans}
}

// planFields are what becomes of the fields of a Plan.
var planFields = []field{
	{[]string{"concurrency"}, to("strategy.maxParallel; the cluster's limits hold besides")},
	{[]string{"nodeSelector"}, to("selector, without the nodes that are through")},
	{[]string{"cordon"}, to("maintenance.cordon, where nothing is drained")},
	{[]string{"drain"}, to("maintenance.drain")},
	{[]string{"drain", "timeout"}, to("strategy.blockedAfter, with onBlocked skip: the node is given back and tried again")},
	{[]string{"drain", "disableEviction"}, without("drain.escalation with bypassBudget, which is recorded: budgets are asked until then")},
	{[]string{"prepare"}, to("an init container of the Job, which runs once the node is Ready; a hook beforeCordon runs before the drain")},
	{[]string{"upgrade"}, to("maintenance.work, a Job")},
	{[]string{"jobActiveDeadlineSecs"}, to("the work's deadline")},
	{[]string{"postCompleteDelay"}, to("strategy.pauseBetween")},
	{[]string{"postCompleteLabels"}, without("let the Job label its node, or what follows the channel")},
	{[]string{"window"}, to("windows, by a window of the worker's configuration")},
	{[]string{"exclusive"}, to("drydock limits, which hold for all plans together")},
	{[]string{"channel"}, without("a plan is one change: the next version is the next plan")},
	{[]string{"version"}, to("the image's tag")},
	{[]string{"secrets"}, to("volumes of the Job")},
	{[]string{"serviceAccountName"}, to("that of the Job's pod, in its namespace")},
	{[]string{"tolerations"}, to("those of the Job's pod")},
	{[]string{"imagePullSecrets"}, to("those of the Job's pod")},
	{[]string{"priorityClassName"}, to("that of the Job's pod")},
}

// upgradePlan is a Plan as system-upgrade-controller reads it.
type upgradePlan struct {
	Concurrency           int                           `json:"concurrency"`
	JobActiveDeadlineSecs *int64                        `json:"jobActiveDeadlineSecs"`
	NodeSelector          *metav1.LabelSelector         `json:"nodeSelector"`
	ServiceAccountName    string                        `json:"serviceAccountName"`
	Version               string                        `json:"version"`
	Secrets               []planSecret                  `json:"secrets"`
	Tolerations           []corev1.Toleration           `json:"tolerations"`
	Window                *planWindow                   `json:"window"`
	Prepare               *planContainer                `json:"prepare"`
	Upgrade               *planContainer                `json:"upgrade"`
	Cordon                bool                          `json:"cordon"`
	Drain                 *planDrain                    `json:"drain"`
	ImagePullSecrets      []corev1.LocalObjectReference `json:"imagePullSecrets"`
	PostCompleteDelay     *metav1.Duration              `json:"postCompleteDelay"`
	PriorityClassName     string                        `json:"priorityClassName"`
}

type planSecret struct {
	Name          string `json:"name"`
	Path          string `json:"path"`
	IgnoreUpdates bool   `json:"ignoreUpdates"`
	DefaultMode   *int32 `json:"defaultMode"`
}

type planWindow struct {
	Days      []string `json:"days"`
	StartTime string   `json:"startTime"`
	EndTime   string   `json:"endTime"`
	TimeZone  string   `json:"timeZone"`
}

type planDrain struct {
	Timeout                  *intstr.IntOrString   `json:"timeout"`
	GracePeriod              *int                  `json:"gracePeriod"`
	DeleteLocalData          *bool                 `json:"deleteLocalData"`
	DeleteEmptydirData       *bool                 `json:"deleteEmptydirData"`
	Force                    bool                  `json:"force"`
	SkipWaitForDeleteTimeout int                   `json:"skipWaitForDeleteTimeout"`
	PodSelector              *metav1.LabelSelector `json:"podSelector"`
}

type planContainer struct {
	Image   string                 `json:"image"`
	Command []string               `json:"command"`
	Args    []string               `json:"args"`
	Env     []corev1.EnvVar        `json:"envs"`
	EnvFrom []corev1.EnvFromSource `json:"envFrom"`
	Volumes []struct {
		Name        string `json:"name"`
		Source      string `json:"source"`
		Destination string `json:"destination"`
	} `json:"volumes"`
	SecurityContext *corev1.SecurityContext `json:"securityContext"`
}

func (u upgradeController) Report(c Cluster) Report {
	r := Report{From: UpgradeController, Claims: u.Claims(c)}
	objects := c.objects(&r, upgradePlans, "Plan")
	r.fields("Plan", objects, planFields)
	if len(objects) > 0 {
		r.add(without("a Job that fails is not tried again; the plan pauses, and drydock plan retry tries the node again"), "SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT", "")
	}
	r.Take = []string{
		"# Put work, windows and the Jobs' files into the worker's configuration. Apply deploy/kubernetes/rbac-work.yaml, and its Role and",
		"# RoleBinding once more for the namespace of each Plan, where its Jobs run.",
	}
	config, names := map[string]any{}, map[string]int{}
	for i := range objects {
		names[objects[i].GetName()]++
	}
	for i := range objects {
		o := &objects[i]
		name := o.GetName()
		if names[name] > 1 {
			name = o.GetNamespace() + "-" + name
		}
		if u.report(&r, o, name, config) {
			r.Take = append(r.Take, takePlan(o, name)...)
		}
	}
	if len(config) > 0 {
		r.input("worker.yaml", "Part of the worker's configuration", config)
	}
	r.Back = []string{
		"# Cancel the plans (drydock plan cancel NAME) or wait for their end, and label the nodes that are through as the Plan has it:",
		"kubectl label node NODE --overwrite " + donePrefix + "NAME=HASH   # HASH is the Plan's status.latestHash",
		"# Take that label off the nodes that have the value disabled, and give the Plans their concurrency again.",
	}
	return r
}

// takePlan are the steps by which a plan of Drydock takes the place of a Plan.
func takePlan(o *unstructured.Unstructured, name string) []string {
	return []string{
		"drydock plan create " + name + " --file " + name + ".yaml --dry-run",
		fmt.Sprintf(`kubectl -n %s patch plan.upgrade.cattle.io %s --type merge -p '{"spec":{"concurrency":0}}'`, o.GetNamespace(), o.GetName()),
		"# Wait until it is applied to no node: kubectl get plan.upgrade.cattle.io -A -o wide. A node whose Job has failed stays there:",
		"kubectl label node NODE --overwrite " + donePrefix + o.GetName() + "=disabled   # then delete its Job",
		"drydock plan create " + name + " --file " + name + ".yaml --yes",
	}
}

// report writes the inputs that a Plan becomes under a name, and reports whether there are any.
func (upgradeController) report(r *Report, o *unstructured.Unstructured, name string, config map[string]any) bool {
	wrong := func(format string, args ...any) bool {
		r.Problems = append(r.Problems, "Plan "+named(o)+": "+fmt.Sprintf(format, args...))
		return false
	}
	p, err := as[upgradePlan](o.Object, "spec")
	if err != nil {
		return wrong("%v", err)
	}
	hash, version := text(o.Object, "status", "latestHash"), cmp.Or(text(o.Object, "status", "latestVersion"), p.Version)
	r.Found = append(r.Found, fmt.Sprintf("Plan %s: version %s, applied to %s", named(o), cmp.Or(version, "not known"), cmp.Or(strings.Join(applying(o), ", "), "no node")))
	selector, err := p.selector(o.GetName(), hash)
	w, note, noWindow := p.window()
	switch {
	case err != nil:
		return wrong("nodeSelector: %v", err)
	case p.Upgrade == nil:
		return wrong("upgrade: is missing")
	case p.Concurrency < 1:
		return wrong("concurrency: %d applies it to no node: a plan of Drydock has no such pace", p.Concurrency)
	case noWindow != nil:
		return wrong("window: %v", noWindow)
	}
	maintenance, blockedAfter := p.maintenance(name)
	strategy := map[string]any{"maxParallel": p.Concurrency}
	if blockedAfter > 0 {
		strategy["onBlocked"], strategy["blockedAfter"] = "skip", period.Text(blockedAfter)
	}
	if d := p.PostCompleteDelay; d != nil && d.Duration > 0 {
		strategy["pauseBetween"] = period.Text(d.Duration)
	}
	input := map[string]any{"selector": selector.String(), "reason": "upgrade to " + cmp.Or(version, "the latest version"), "strategy": strategy, "maintenance": maintenance}
	if w != nil {
		part(config, "windows")[name] = w
		input["windows"] = []string{name}
		if note != "" {
			r.add(without(note), "Plan "+named(o)+" window", "")
		}
	}
	part(config, "work")[name] = map[string]any{
		"job":      map[string]any{"templateFile": "/etc/drydock/job-" + name + ".yaml", "namespace": o.GetNamespace()},
		"deadline": period.Text(p.deadline()),
	}
	fits := r.plan(name, "drydock plan create "+name+" --file "+name+".yaml", input)
	comment := "The work of " + name + ": name the image by its digest. Where it restarts the node, add success: newBootID to the work"
	return r.input("job-"+name+".yaml", comment, p.job(name, hash, version)) && fits
}

// part is a part of a configuration.
func part(config map[string]any, name string) map[string]any {
	if config[name] == nil {
		config[name] = map[string]any{}
	}
	return config[name].(map[string]any) //nolint:forcetypeassert // it was made above
}

// selector selects the nodes of a plan that are not through.
func (p upgradePlan) selector(name, hash string) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(p.NodeSelector)
	if err != nil || hash == "" {
		return selector, err
	}
	through, err := labels.NewRequirement(donePrefix+name, "notin", []string{"disabled", hash})
	if err != nil {
		return nil, err
	}
	return selector.Add(*through), nil
}

// maintenance is the part of the maintenances' input, and after what time a node counts as blocked; 0 is never.
func (p upgradePlan) maintenance(name string) (m map[string]any, blockedAfter time.Duration) {
	m = map[string]any{"work": name}
	d := p.Drain
	if p.deadline() > defaultReadyTimeout {
		m["readyTimeout"] = period.Text(p.deadline()) // the work may not have longer
	}
	if d == nil {
		m["drain"], m["cordon"] = map[string]any{"mode": "none"}, p.Cordon
		return m, 0
	}
	drain := map[string]any{"protectedFor": "0s", "force": d.Force, "deleteEmptyDir": isTrue(d.DeleteLocalData) && isTrue(d.DeleteEmptydirData)}
	if d.GracePeriod != nil && *d.GracePeriod >= 0 {
		drain["gracePeriodSeconds"] = *d.GracePeriod
	}
	if d.SkipWaitForDeleteTimeout > 0 {
		drain["skipWaitForDeleteTimeout"] = fmt.Sprintf("%ds", d.SkipWaitForDeleteTimeout)
	}
	if d.PodSelector != nil {
		drain["podSelector"] = metav1.FormatLabelSelector(d.PodSelector)
	}
	if t := d.Timeout; t != nil {
		blockedAfter = time.Duration(t.IntVal)
		if t.Type == intstr.String {
			blockedAfter, _ = time.ParseDuration(t.StrVal) // kubectl refuses what is none
		}
	}
	m["drain"] = drain
	return m, blockedAfter
}

func isTrue(b *bool) bool { return b == nil || *b }

// defaultReadyTimeout is that of a maintenance.
const defaultReadyTimeout = time.Hour

// deadline is that of a Job. The controller's manifest has 15 minutes where a Plan says nothing. One without an end gets a day.
func (p upgradePlan) deadline() time.Duration {
	switch s := p.JobActiveDeadlineSecs; {
	case s == nil || *s < 0:
		return 15 * time.Minute
	case *s == 0:
		return 24 * time.Hour
	default:
		return time.Duration(*s) * time.Second
	}
}

// window is when Jobs are begun, nil if that is always. The controller wants all of its fields but the zone.
func (p upgradePlan) window() (w *window.Window, note string, err error) {
	if p.Window == nil {
		return nil, "", nil
	}
	if len(p.Window.Days) == 0 || p.Window.StartTime == "" || p.Window.EndTime == "" {
		return nil, "", errors.New("days, startTime and endTime: without one of them no Job is ever begun")
	}
	return hours{days: p.Window.Days, start: p.Window.StartTime, end: p.Window.EndTime, zone: p.Window.TimeZone}.window()
}

// applying are the hostnames of the nodes that a Plan is applied to now.
func applying(o *unstructured.Unstructured) []string {
	names, _, err := unstructured.NestedStringSlice(o.Object, "status", "applying")
	if err != nil {
		return nil
	}
	return names
}

func (upgradeController) Claims(c Cluster) (claims []Claim) {
	for i := range c.Objects[upgradePlans] {
		o := &c.Objects[upgradePlans][i]
		p, err := as[upgradePlan](o.Object, "spec")
		hash := text(o.Object, "status", "latestHash")
		if err != nil || hash == "" {
			continue // the report says what cannot be read; a plan without a version is applied to no node
		}
		selector, err := p.selector(o.GetName(), hash)
		if err != nil {
			continue
		}
		busy := applying(o)
		for j := range c.Nodes {
			n := &c.Nodes[j]
			claim := Claim{Node: n.Name, For: named(o), State: "waits", Becomes: "the plan " + o.GetName() + " takes it"}
			switch out := slices.Contains(busy, cmp.Or(n.Labels[corev1.LabelHostname], n.Name)); {
			case out:
				claim.State, claim.Out = "applying", true
				claim.Becomes = "left alone: let its Job end, or label the node disabled, delete its Job and uncordon it"
			case !selector.Matches(labels.Set(n.Labels)):
				continue
			}
			claims = append(claims, claim)
		}
	}
	return claims
}

// Refusals go by the pace and the windows of the plans, and by Drydock's limits where they are given.
func (u upgradeController) Refusals(c Cluster, asked []Claim) (map[string]string, error) {
	s := slots{limits: schedule.Limits{MaxParallel: schedule.Unlimited()}, paces: map[string]int{}, windows: map[string]window.Window{}, opens: map[string]string{}}
	for i := range c.Objects[upgradePlans] {
		o := &c.Objects[upgradePlans][i]
		p, err := as[upgradePlan](o.Object, "spec")
		if err != nil {
			return nil, fmt.Errorf("the Plan %s: %w", named(o), err)
		}
		s.paces[named(o)] = max(p.Concurrency, 0)
		w, _, err := p.window()
		if err != nil {
			return nil, fmt.Errorf("the Plan %s: window: %w", named(o), err)
		}
		if w != nil {
			s.windows[named(o)], s.opens[named(o)] = *w, named(o)
		}
	}
	return s.over(u.given.Limits).refusals(c, u.Claims(c), asked)
}
