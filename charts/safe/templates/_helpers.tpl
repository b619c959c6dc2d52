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

{{- /* An umbrella's registry stands before a repository that names none; of what else is global, nothing is ignored. */ -}}
{{- define "safe.image" -}}
{{- $global := .Values.global | default dict -}}
{{- range $key, $_ := $global }}{{ if and (hasPrefix "image" $key) (not (has $key (list "imageRegistry" "imagePullSecrets"))) }}{{ fail (printf "global.%s does nothing here: set image, or global.imageRegistry and global.imagePullSecrets" $key) }}{{ end }}{{ end -}}
{{- with .Values.image }}
{{- if not .repository }}{{ fail "set image.repository to where your image of SAFE is, such as registry.example.org/safe" }}{{ end }}
{{- $first := splitList "/" .repository | first -}}
{{- $named := and (contains "/" .repository) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- with $global.imageRegistry }}
{{- if and $named (not (hasPrefix (printf "%s/" .) $.Values.image.repository)) }}{{ fail (printf "global.imageRegistry is %s, but image.repository names another registry: %s" . $.Values.image.repository) }}{{ end -}}
{{- if not $named }}{{ . }}/{{ end }}
{{- end }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* As a list of names; an umbrella may give them as names or as {name: …}. */ -}}
{{- define "safe.pullSecrets" -}}
{{- range concat .Values.imagePullSecrets ((.Values.global | default dict).imagePullSecrets | default list) }}
- name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}
{{- end }}
{{- end }}

{{- /* The autoscaling that is asked for, also by a single word. */ -}}
{{- define "safe.autoscaling" -}}
{{- $defaults := dict "minReplicas" 2 "maxReplicas" 8 "cpuPercent" 70 "lagPerWorker" 10000 "triggerAuthentication" "" -}}
{{- toYaml (ternary (merge (dict "by" .Values.autoscaling) $defaults) .Values.autoscaling (kindIs "string" .Values.autoscaling)) }}
{{- end }}
