{{- /* A Service's name has no dot and, before Kubernetes 1.36, begins with a letter. */ -}}
{{- define "leasectl.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) | replace "." "-" -}}
{{- ternary (printf "%s-%s" .Chart.Name $name) $name (regexMatch "^[0-9]" $name) | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "leasectl.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "leasectl.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "leasectl.account" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "leasectl.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "leasectl.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- /* What opens the store: an option, and the volume that it names. */ -}}
{{- define "leasectl.store" -}}
{{- with .Values.store }}
{{- if and .existingSecret .uri }}{{ fail "two stores are named: set store.existingSecret or store.uri, and not both" }}{{ end }}
{{- if regexMatch "://[^/@]*:[^/@]*@|[?&]password=" .uri }}{{ fail "store.uri has a password, which everybody who reads the Deployment would see: put the URI into a Secret, and name that as store.existingSecret" }}{{ end }}
{{- if .existingSecret }}{{ list "--store-file" "/run/secrets/store/uri" | toJson }}{{ else }}{{ list "--store" (required "name the store: set store.existingSecret, or store.uri" .uri) | toJson }}{{ end }}
{{- end }}
{{- end }}

{{- /* Whether the pods may ask the API server: the store k8s: does, and a job may. */ -}}
{{- define "leasectl.automount" -}}
{{ or .Values.rbac.create .Values.serviceAccount.automount (hasPrefix "k8s:" .Values.store.uri) }}
{{- end }}
