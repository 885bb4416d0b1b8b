package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/sections"
)

// Keys on a Job and its pods.
const (
	WorkflowLabel      = api.WorkflowLabel
	workflowAnnotation = "drydock.dev/workflow"
	runAnnotation      = "drydock.dev/run"
	keyAnnotation      = "drydock.dev/key"
	noteAnnotation     = "drydock.dev/note"
	managedByLabel     = "app.kubernetes.io/managed-by"
	managedBy          = "drydock"
)

// A finished Job stays for keptFor seconds, and at least for leastKept: a worker that was restarted meanwhile must still
// find how it ended.
const (
	keptFor   = 3600
	leastKept = 600
)

// manifest reads the Job's manifest, and refuses what Drydock has to decide itself.
func (r *run) manifest() (*batchv1.Job, error) {
	c := r.config
	data, err := os.ReadFile(c.TemplateFile)
	if err != nil {
		return nil, fmt.Errorf("templateFile: %w", err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(data, &job); err != nil {
		return nil, fmt.Errorf("templateFile: %s: %w", c.TemplateFile, err)
	}
	var p sections.Problems
	at := func(field string) string { return "templateFile: " + c.TemplateFile + ": " + field }
	if job.APIVersion != "batch/v1" || job.Kind != "Job" {
		p.Add(at("kind"), "%s %s: want batch/v1 Job", job.APIVersion, job.Kind)
	}
	if job.Namespace != "" && job.Namespace != c.Namespace {
		p.Add(at("metadata.namespace"), "%q is not the configured namespace %q: leave it out", job.Namespace, c.Namespace)
	}
	if job.Spec.Template.Spec.NodeName != "" {
		p.Add(at("spec.template.spec.nodeName"), "leave it out: the Job runs on the node of the maintenance")
	}
	if job.Spec.Selector != nil || job.Spec.ManualSelector != nil {
		p.Add(at("spec.selector"), "leave it out: Kubernetes makes it, so that no other Job's pods are taken over")
	}
	if len(job.Spec.Template.Spec.Containers) == 0 {
		p.Add(at("spec.template.spec.containers"), "required: what the Job runs")
	}
	if ttl := job.Spec.TTLSecondsAfterFinished; ttl != nil && *ttl < leastKept {
		p.Add(at("spec.ttlSecondsAfterFinished"), "%d: want at least %d, or leave it out: a restarted worker has to find how the Job ended", *ttl, leastKept)
	}
	if r.at.Role == checks.RoleWork {
		checkOnce(&job, at, &p)
	}
	return &job, p.Join()
}

// build makes the Job for a subject.
func (r *run) build(id identity, s checks.Subject) (*batchv1.Job, error) {
	job, err := r.manifest()
	if err != nil {
		return nil, err
	}
	job.Name, job.GenerateName, job.Namespace = id.jobName(), "", r.config.Namespace
	// Without an owner: the Job goes by its TTL, and with nothing else that could be deleted too early.
	job.OwnerReferences, job.ResourceVersion, job.UID = nil, "", ""
	if job.Spec.ActiveDeadlineSeconds == nil {
		seconds := max(1, int64(r.config.Deadline.Std().Seconds()))
		job.Spec.ActiveDeadlineSeconds = &seconds
	}
	if job.Spec.TTLSecondsAfterFinished == nil {
		seconds := int32(keptFor)
		if r.at.Role == checks.RoleWork {
			seconds = workKeptFor
		}
		job.Spec.TTLSecondsAfterFinished = &seconds
	}
	if r.at.Role == checks.RoleWork {
		job.Spec.BackoffLimit = new(int32)
	}
	for _, meta := range []*metav1.ObjectMeta{&job.ObjectMeta, &job.Spec.Template.ObjectMeta} {
		meta.Labels = with(meta.Labels, map[string]string{WorkflowLabel: labelOf(s.WorkflowID), managedByLabel: managedBy})
		meta.Annotations = with(meta.Annotations, map[string]string{workflowAnnotation: s.WorkflowID, runAnnotation: s.RunID, keyAnnotation: id.digest()})
	}
	pod := &job.Spec.Template.Spec
	if pod.AutomountServiceAccountToken == nil {
		// A manifest that needs the API server sets this.
		pod.AutomountServiceAccountToken = new(bool)
	}
	pin(pod, s.Node)
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = environment(containers[i].Env, s)
		}
	}
	return job, nil
}

// labelOf is the value of WorkflowLabel: a workflow ID is too long for a label.
func labelOf(workflowID string) string {
	sum := sha256.Sum256([]byte(workflowID))
	return hex.EncodeToString(sum[:8])
}

func with(have, more map[string]string) map[string]string {
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range more {
		have[key] = value
	}
	return have
}

// pin lets a pod be scheduled to the node and nowhere else, cordoned as it is. Naming the node in spec.nodeName would
// bypass the scheduler, and with it the room on the node, volumes' topology, and claims of devices: the kubelet would fail
// the pod instead of letting it wait.
func pin(pod *corev1.PodSpec, node string) {
	here := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	// The terms are alternatives: each of them has to mean the node.
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		term.MatchFields = append(term.MatchFields, here)
	}
	pod.Tolerations = append(pod.Tolerations,
		corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		corev1.Toleration{Key: k8s.MaintenanceTaint.Key, Operator: corev1.TolerationOpExists, Effect: k8s.MaintenanceTaint.Effect})
}

// environment puts the subject in front of a container's variables, which may refer to it. A dollar sign is doubled, or
// the kubelet would read "$(NAME)" in anybody's text as a variable's value.
func environment(have []corev1.EnvVar, s checks.Subject) []corev1.EnvVar {
	clean := strings.NewReplacer("$", "$$", "\x00", "")
	var all []corev1.EnvVar
	given := map[string]bool{}
	for _, v := range []struct{ name, value string }{
		{"NODE", s.Node}, {"REQUESTOR", s.Requestor}, {"REASON", s.Reason}, {"TICKET", s.Ticket}, {"CLUSTER", s.Cluster},
		{"INTERNAL_IP", s.InternalIP}, {"PROVIDER_ID", s.ProviderID}, {"WORKFLOW_ID", s.WorkflowID}, {"RUN_ID", s.RunID},
		{"CAPTURED", s.Captured},
	} {
		name := "DRYDOCK_" + v.name
		given[name] = true
		all = append(all, corev1.EnvVar{Name: name, Value: clean.Replace(strings.ToValidUTF8(v.value, "�"))})
	}
	for _, v := range have {
		if !given[v.Name] {
			all = append(all, v)
		}
	}
	return all
}
