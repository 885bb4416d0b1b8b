{{/* The release's name, with the chart's where that is not in it. */}}
{{- define "drydock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "drydock.worker" -}}
{{ include "drydock.fullname" . }}-worker
{{- end -}}

{{- define "drydock.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: worker
{{- end -}}

{{- define "drydock.labels" -}}
{{ include "drydock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "drydock.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "drydock.worker" .) -}}
{{- else -}}
{{- required "serviceAccount.name is required where serviceAccount.create is false: which account has the worker's permissions?" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "drydock.priorityClass" -}}
{{- if .Values.priorityClass.create -}}
{{- .Values.priorityClass.name | default (include "drydock.worker" .) -}}
{{- else -}}
{{- .Values.priorityClass.name -}}
{{- end -}}
{{- end -}}

{{- define "drydock.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a schema cannot say well. */}}
{{- define "drydock.check" -}}
{{- with .Values -}}
{{- if eq (.image.tag | default $.Chart.AppVersion) "latest" -}}
{{- fail "image.tag: latest is no version: nobody could say what runs, or go back" -}}
{{- end -}}
{{- if and (not .temporal.tls.enabled) .temporal.tls.ca.secret -}}
{{- fail "temporal.tls.ca.secret: it has no meaning without temporal.tls.enabled" -}}
{{- end -}}
{{- if and (not .temporal.tls.enabled) .temporal.tls.client.secret -}}
{{- fail "temporal.tls.client.secret: it has no meaning without temporal.tls.enabled" -}}
{{- end -}}
{{- range $field := list "kubeconfig" "context" -}}
{{- if hasKey ($.Values.config.kubernetes | default dict) $field -}}
{{- fail (printf "config.kubernetes.%s: the worker works on the cluster that it runs in" $field) -}}
{{- end -}}
{{- end -}}
{{- if and .profiles (dig "profiles" "file" "" .config) -}}
{{- fail "config.profiles.file: it is the chart's where profiles has the file's text" -}}
{{- end -}}
{{- if hasKey .files "drydock.yaml" -}}
{{- fail "files[drydock.yaml]: it is made from config" -}}
{{- end -}}
{{- range $i, $volume := .volumes -}}
{{- if hasKey $volume "emptyDir" -}}
{{- fail (printf "volumes[%d].emptyDir: a drain refuses to lose one without consent, also that of the worker's own node" $i) -}}
{{- end -}}
{{- end -}}
{{- if and (not .rbac.create) .rbac.features -}}
{{- fail "rbac.features: they have no meaning without rbac.create" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The files in /etc/drydock, as a ConfigMap's data. */}}
{{- define "drydock.files" -}}
{{- $config := merge (dict "listen" (printf ":%d" (int .Values.port))) .Values.config -}}
{{- if .Values.profiles -}}
{{- $config = merge (dict "profiles" (dict "file" "/etc/drydock-profiles/maintenance.yaml")) $config -}}
{{- end -}}
{{- toYaml (merge (dict "drydock.yaml" (printf "%s\n" (toYaml $config))) .Values.files) -}}
{{- end -}}
