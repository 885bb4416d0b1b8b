package migration

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// job is the Job that the controller makes for each node, without what Drydock does itself: the drain, the node to run on, and no second
// try.
func (p upgradePlan) job(name, hash, version string) map[string]any {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, HostIPC: true, HostPID: true, HostNetwork: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet,
		ServiceAccountName: p.ServiceAccountName, AutomountServiceAccountToken: new(true), PriorityClassName: p.PriorityClassName,
		ImagePullSecrets: p.ImagePullSecrets, Tolerations: p.Tolerations, Volumes: p.volumes(),
	}
	env := []corev1.EnvVar{
		{Name: "SYSTEM_UPGRADE_PLAN_NAME", Value: name}, {Name: "SYSTEM_UPGRADE_PLAN_LATEST_HASH", Value: hash},
		{Name: "SYSTEM_UPGRADE_PLAN_LATEST_VERSION", Value: version},
	}
	if p.Prepare != nil {
		pod.InitContainers = []corev1.Container{p.container("prepare", *p.Prepare, nil, version, env)}
	}
	privileged := &corev1.SecurityContext{Privileged: new(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_BOOT"}}}
	pod.Containers = []corev1.Container{p.container("upgrade", *p.Upgrade, privileged, version, env)}
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": map[string]any{"spec": pod}}}
}

// container is one of the Job's containers, with what the controller gives each.
func (p upgradePlan) container(name string, of planContainer, otherwise *corev1.SecurityContext, version string, env []corev1.EnvVar) corev1.Container {
	fromField := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	own := []corev1.EnvVar{
		fromField("SYSTEM_UPGRADE_NODE_NAME", "spec.nodeName"), fromField("SYSTEM_UPGRADE_POD_NAME", "metadata.name"),
		fromField("SYSTEM_UPGRADE_POD_UID", "metadata.uid"),
	}
	mounts := []corev1.VolumeMount{{Name: "host-root", MountPath: "/host"}, {Name: "pod-info", MountPath: "/run/system-upgrade/pod", ReadOnly: true}}
	for _, secret := range p.Secrets {
		at := cmp.Or(secret.Path, secret.Name)
		if !path.IsAbs(at) {
			at = path.Join("/run/system-upgrade/secrets", at)
		}
		mounts = append(mounts, corev1.VolumeMount{Name: "secret-" + secret.Name, MountPath: at, ReadOnly: true})
	}
	for _, v := range of.Volumes {
		mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: v.Destination})
	}
	return corev1.Container{
		Name: name, Image: tagged(of.Image, version), Command: of.Command, Args: of.Args, EnvFrom: of.EnvFrom, Env: slices.Concat(own, of.Env, env),
		SecurityContext: cmp.Or(of.SecurityContext, otherwise), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, VolumeMounts: mounts,
	}
}

// volumes are those that the controller gives each Job, those of secrets, and those of its containers.
func (p upgradePlan) volumes() []corev1.Volume {
	fromField := func(path string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + path}}
	}
	all := []corev1.Volume{
		{Name: "host-root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: new(corev1.HostPathDirectory)}}},
		{Name: "pod-info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{fromField("labels"), fromField("annotations")},
		}}},
	}
	for _, secret := range p.Secrets {
		all = append(all, corev1.Volume{Name: "secret-" + secret.Name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secret.Name, DefaultMode: secret.DefaultMode, Optional: new(secret.IgnoreUpdates),
		}}})
	}
	for _, container := range []*planContainer{p.Prepare, p.Upgrade} {
		if container == nil {
			continue
		}
		for _, v := range container.Volumes {
			if !slices.ContainsFunc(all, func(there corev1.Volume) bool { return there.Name == v.Name }) {
				all = append(all, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.Source}}})
			}
		}
	}
	return all
}

// tagged is an image, with a tag if it has neither tag nor digest.
func tagged(image, tag string) string {
	if tag == "" || strings.Contains(image, "@") || strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") {
		return image
	}
	return image + ":" + strings.ReplaceAll(tag, "+", "-")
}
