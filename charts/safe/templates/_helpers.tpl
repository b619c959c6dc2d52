{{- define "safe.name" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}{{ else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* A Deployment's selector can never be changed: nothing that may change stands in it, not even the role. */ -}}
{{- define "safe.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Of pods; a new version of the chart alone does not restart them. */ -}}
{{- define "safe.podLabels" -}}
{{ include "safe.selector" . }}
app.kubernetes.io/component: {{ .Values.role }}
{{- end }}

{{- define "safe.labels" -}}
{{ include "safe.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- range $key, $value := omit .Values.commonLabels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- /* Two maps of YAML as one; where both have a key, the first one's stands. */ -}}
{{- define "safe.merged" -}}
{{- toYaml (merge (fromYaml (index . 0)) (index . 1)) }}
{{- end }}

{{- define "safe.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "safe.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "safe.image" -}}
{{- with .Values.image }}
{{- if not .repository }}{{ fail "set image.repository to where your image of SAFE is, such as registry.example.org/safe" }}{{ end }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}
