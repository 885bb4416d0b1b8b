package migration

import (
	"cmp"
	"fmt"
	"path"
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
	{[]string{"cordon"}, to("maintenance.cordon, which is always so")},
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
	Name string `json:"name"`
	Path string `json:"path"`
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
	config := map[string]any{}
	for i := range objects {
		u.report(&r, &objects[i], config)
	}
	if len(config) > 0 {
		r.input("worker.yaml", "Part of the worker's configuration", config)
	}
	r.Take = []string{
		"# Put work, windows and the Jobs' files into the worker's configuration, and grant deploy/kubernetes/rbac-work.yaml.",
	}
	for i := range objects {
		name := objects[i].GetName()
		r.Take = append(r.Take, "drydock plan create "+name+" --file "+name+".yaml --dry-run",
			fmt.Sprintf(`kubectl -n %s patch plan.upgrade.cattle.io %s --type merge -p '{"spec":{"concurrency":0}}'`, objects[i].GetNamespace(), name),
			"# Once "+name+" is applied to no node (kubectl get plan.upgrade.cattle.io -o wide):",
			"drydock plan create "+name+" --file "+name+".yaml --yes")
	}
	r.Back = []string{
		"# Cancel the plans (drydock plan cancel NAME) or wait for their end, and label the nodes that are through as the Plan has it:",
		"kubectl label node NODE " + donePrefix + "NAME=HASH   # HASH is the Plan's status.latestHash",
		"# Give the Plans their concurrency again.",
	}
	return r
}

// report writes the inputs that a Plan becomes.
func (upgradeController) report(r *Report, o *unstructured.Unstructured, config map[string]any) {
	p, err := as[upgradePlan](o.Object, "spec")
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("Plan %s: %v", named(o), err))
		return
	}
	name, hash, version := o.GetName(), text(o.Object, "status", "latestHash"), cmp.Or(text(o.Object, "status", "latestVersion"), p.Version)
	r.Found = append(r.Found, fmt.Sprintf("Plan %s: version %s, applied to %s", named(o), cmp.Or(version, "not known"), cmp.Or(strings.Join(applying(o), ", "), "no node")))
	selector, err := p.selector(name, hash)
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("Plan %s: nodeSelector: %v", named(o), err))
		return
	}
	if p.Upgrade == nil {
		r.Problems = append(r.Problems, fmt.Sprintf("Plan %s: upgrade: is missing", named(o)))
		return
	}
	maintenance, blockedAfter := p.maintenance(name)
	strategy := map[string]any{"maxParallel": max(p.Concurrency, 1)}
	if blockedAfter > 0 {
		strategy["onBlocked"], strategy["blockedAfter"] = "skip", period.Text(blockedAfter)
	}
	if d := p.PostCompleteDelay; d != nil && d.Duration > 0 {
		strategy["pauseBetween"] = period.Text(d.Duration)
	}
	input := map[string]any{"selector": selector.String(), "reason": "upgrade to " + cmp.Or(version, "the latest version"), "strategy": strategy, "maintenance": maintenance}
	part(config, "work")[name] = map[string]any{
		"job":      map[string]any{"templateFile": "/etc/drydock/job-" + name + ".yaml", "namespace": o.GetNamespace()},
		"deadline": period.Text(p.deadline()),
	}
	w, note, err := p.hours().window()
	switch {
	case err != nil:
		r.Problems = append(r.Problems, fmt.Sprintf("Plan %s: window: %v", named(o), err))
	case w != nil:
		part(config, "windows")[name] = w
		input["windows"] = []string{name}
		if note != "" {
			r.add(without(note), "Plan "+named(o)+" window", "")
		}
	}
	r.plan(name, "drydock plan create "+name+" --file "+name+".yaml", input)
	r.input("job-"+name+".yaml", "The work of "+name+": name the image by its digest", p.job(name, hash, version))
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
	if d == nil {
		m["drain"] = map[string]any{"mode": "none"}
		return m, 0
	}
	drain := map[string]any{"force": d.Force, "deleteEmptyDir": isTrue(d.DeleteLocalData) && isTrue(d.DeleteEmptydirData)}
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

// deadline is that of a Job: the controller's own is 10 minutes. One without an end gets a day.
func (p upgradePlan) deadline() time.Duration {
	switch s := p.JobActiveDeadlineSecs; {
	case s == nil || *s < 0:
		return 10 * time.Minute
	case *s == 0:
		return 24 * time.Hour
	default:
		return time.Duration(*s) * time.Second
	}
}

func (p upgradePlan) hours() hours {
	if p.Window == nil {
		return hours{}
	}
	return hours{days: p.Window.Days, start: p.Window.StartTime, end: p.Window.EndTime, zone: p.Window.TimeZone}
}

// job is the Job that the controller makes for each node, without what Drydock does itself: the drain, and the node to run on.
func (p upgradePlan) job(name, hash, version string) map[string]any {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, HostIPC: true, HostPID: true, HostNetwork: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet,
		ServiceAccountName: p.ServiceAccountName, PriorityClassName: p.PriorityClassName, ImagePullSecrets: p.ImagePullSecrets, Tolerations: p.Tolerations,
		Volumes: []corev1.Volume{{Name: "host-root", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: new(corev1.HostPathDirectory)},
		}}},
	}
	for _, secret := range p.Secrets {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "secret-" + secret.Name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret.Name},
		}})
	}
	privileged := &corev1.SecurityContext{Privileged: new(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_BOOT"}}}
	container := func(as string, of planContainer, otherwise *corev1.SecurityContext) corev1.Container {
		built := corev1.Container{
			Name: as, Image: tagged(of.Image, version), Command: of.Command, Args: of.Args, EnvFrom: of.EnvFrom,
			SecurityContext: cmp.Or(of.SecurityContext, otherwise), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts: []corev1.VolumeMount{{Name: "host-root", MountPath: "/host"}},
		}
		fromField := func(name, path string) corev1.EnvVar {
			return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
		}
		built.Env = slices.Concat(
			[]corev1.EnvVar{
				fromField("SYSTEM_UPGRADE_NODE_NAME", "spec.nodeName"), fromField("SYSTEM_UPGRADE_POD_NAME", "metadata.name"),
				fromField("SYSTEM_UPGRADE_POD_UID", "metadata.uid"),
			}, of.Env, []corev1.EnvVar{
				{Name: "SYSTEM_UPGRADE_PLAN_NAME", Value: name}, {Name: "SYSTEM_UPGRADE_PLAN_LATEST_HASH", Value: hash},
				{Name: "SYSTEM_UPGRADE_PLAN_LATEST_VERSION", Value: version},
			})
		for _, secret := range p.Secrets {
			at := cmp.Or(secret.Path, secret.Name)
			if !path.IsAbs(at) {
				at = path.Join("/run/system-upgrade/secrets", at)
			}
			built.VolumeMounts = append(built.VolumeMounts, corev1.VolumeMount{Name: "secret-" + secret.Name, MountPath: at, ReadOnly: true})
		}
		for _, v := range of.Volumes {
			built.VolumeMounts = append(built.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: v.Destination})
			if !slices.ContainsFunc(pod.Volumes, func(there corev1.Volume) bool { return there.Name == v.Name }) {
				pod.Volumes = append(pod.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.Source}}})
			}
		}
		return built
	}
	if p.Prepare != nil {
		pod.InitContainers = []corev1.Container{container("prepare", *p.Prepare, nil)}
	}
	pod.Containers = []corev1.Container{container("upgrade", *p.Upgrade, privileged)}
	return map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"spec": map[string]any{"backoffLimit": 2, "template": map[string]any{"spec": pod}},
	}
}

// tagged is an image, with a tag if it has neither tag nor digest.
func tagged(image, tag string) string {
	if tag == "" || strings.Contains(image, "@") || strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") {
		return image
	}
	return image + ":" + strings.ReplaceAll(tag, "+", "-")
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
				claim.Becomes = "left alone: let its Job end, or delete it and uncordon the node"
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
		w, _, err := p.hours().window()
		if err != nil {
			return nil, fmt.Errorf("the Plan %s: window: %w", named(o), err)
		}
		if w != nil {
			s.windows[o.GetName()], s.opens[named(o)] = *w, o.GetName()
		}
	}
	return s.over(u.given.Limits).refusals(c, u.Claims(c), asked)
}
