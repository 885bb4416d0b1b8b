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
{{ include "drydock.commonLabels" . }}
{{- end -}}

{{- define "drydock.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "drydock.bridge" -}}
{{ include "drydock.fullname" . }}-bridge
{{- end -}}

{{- define "drydock.bridgeSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: bridge
{{- end -}}

{{- define "drydock.bridgeLabels" -}}
{{ include "drydock.bridgeSelector" . }}
{{ include "drydock.commonLabels" . }}
{{- end -}}

{{- define "drydock.bridgeAccount" -}}
{{- if .Values.bridge.serviceAccount.create -}}
{{- .Values.bridge.serviceAccount.name | default (include "drydock.bridge" .) -}}
{{- else -}}
{{- required "bridge.serviceAccount.name is required where bridge.serviceAccount.create is false: which account has the bridge's permissions?" .Values.bridge.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* The port of the page, where it listens on more than loopback. */}}
{{- define "drydock.pagePort" -}}
{{- $listen := dig "page" "listen" "" .Values.config -}}
{{- if and $listen (not (regexMatch "^(127\\.|localhost:|\\[::1\\])" $listen)) -}}
{{- regexFind "[0-9]+$" $listen -}}
{{- end -}}
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

{{/* How the worker and the bridge find Temporal: variables, and the files that they name. */}}
{{- define "drydock.temporalEnv" -}}
{{- $tls := .Values.temporal.tls -}}
- name: TEMPORAL_ADDRESS
  value: {{ .Values.temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ .Values.temporal.namespace | quote }}
{{- if $tls.enabled }}
- name: TEMPORAL_TLS
  value: "true"
{{- with $tls.serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ . | quote }}
{{- end }}
{{- if $tls.ca.secret }}
- name: TEMPORAL_TLS_SERVER_CA_CERT_PATH
  value: /run/temporal/ca/{{ $tls.ca.key }}
{{- end }}
{{- if $tls.client.secret }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /run/temporal/client/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /run/temporal/client/tls.key
{{- end }}
{{- end }}
{{- with .Values.temporal.apiKey }}
{{- if .secret }}
- name: DRYDOCK_TEMPORAL_API_KEY_FILE
  value: /run/temporal/api-key/{{ .key }}
{{- end }}
{{- end }}
{{- with .Values.temporal.codecKeys }}
{{- if .secret }}
- name: DRYDOCK_CODEC_KEYS_FILE
  value: /run/temporal/codec-keys/{{ .key }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "drydock.temporalMounts" -}}
{{- $tls := .Values.temporal.tls -}}
{{- if and $tls.enabled $tls.ca.secret }}
- {name: temporal-ca, mountPath: /run/temporal/ca, readOnly: true}
{{- end }}
{{- if and $tls.enabled $tls.client.secret }}
- {name: temporal-client, mountPath: /run/temporal/client, readOnly: true}
{{- end }}
{{- if .Values.temporal.apiKey.secret }}
- {name: temporal-api-key, mountPath: /run/temporal/api-key, readOnly: true}
{{- end }}
{{- if .Values.temporal.codecKeys.secret }}
- {name: temporal-codec-keys, mountPath: /run/temporal/codec-keys, readOnly: true}
{{- end }}
{{- end -}}

{{- define "drydock.temporalVolumes" -}}
{{- $tls := .Values.temporal.tls -}}
{{- if and $tls.enabled $tls.ca.secret }}
- name: temporal-ca
  secret: {secretName: {{ $tls.ca.secret }}, defaultMode: 0440}
{{- end }}
{{- if and $tls.enabled $tls.client.secret }}
- name: temporal-client
  secret: {secretName: {{ $tls.client.secret }}, defaultMode: 0440}
{{- end }}
{{- with .Values.temporal.apiKey.secret }}
- name: temporal-api-key
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.temporal.codecKeys.secret }}
- name: temporal-codec-keys
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* The affinity of the values, and pods of one selector on different nodes. */}}
{{- define "drydock.affinity" -}}
{{- with .root.Values.affinity -}}
{{ toYaml . }}
{{- end }}
{{- if not .root.Values.affinity.podAntiAffinity }}
{{- if eq .root.Values.podAntiAffinity "preferred" }}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- .selector | nindent 12 }}
{{- else if eq .root.Values.podAntiAffinity "required" }}
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- .selector | nindent 10 }}
{{- end }}
{{- end }}
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
{{- if and .bridge.enabled (eq .bridge.admission "all") (semverCompare "<1.36.0-0" $.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "bridge.admission: all needs Kubernetes 1.36, and this is %s: set it to validating, or to none (without a cluster, --kube-version says which it is)" $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and .bridge.enabled (eq .bridge.admission "none") (dig "kubernetes" "verifiedObjects" false .config) -}}
{{- fail "config.kubernetes.verifiedObjects: without the policies of bridge.admission an object names whom its writer likes" -}}
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
