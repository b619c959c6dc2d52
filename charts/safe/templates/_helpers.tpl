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

{{- define "safe.shutdownSeconds" -}}
{{ .Values.config.shutdownSeconds | default 20 | int }}
{{- end }}

{{- /* The configuration file; what the pod's surroundings decide stands in its environment, which beats the file. */ -}}
{{- define "safe.config" -}}
{{- $config := .Values.config -}}
{{- range $key, $remedy := dict
      "kafkaSaslPassword" "everyone could read it there: put it as SAFE_V0_KAFKA_SASL_PASSWORD into a Secret, and name that in existingSecret"
      "kafkaSaslOauthClientSecret" "everyone could read it there: put it as SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET into a Secret, and name that in existingSecret"
      "kafkaSslKeyPassword" "everyone could read it there: put it as SAFE_V0_KAFKA_SSL_KEY_PASSWORD into a Secret, and name that in existingSecret"
      "expectationsToken" "everyone could read it there: put it as SAFE_V0_EXPECTATIONS_TOKEN into a Secret, and name that in existingSecret"
      "secretsDir" "name a Secret in existingSecret, and it is mounted"
      "httpAddress" "the chart sets it to what the probes ask"
-}}
{{- if hasKey $config $key }}{{ fail (printf "config.%s does not belong here; %s" $key $remedy) }}{{ end -}}
{{- end -}}
{{- if not $config.kafkaBootstrapServers }}{{ fail "set config.kafkaBootstrapServers to host:port of your brokers" }}{{ end -}}
{{- if ne .Values.role "aggregator" -}}
{{- if not $config.expectations }}{{ fail "set config.expectations to /cases, an https:// address or topic:NAME" }}{{ end -}}
{{- if and (hasPrefix "/cases" $config.expectations) (not (include "safe.casesVolume" .)) }}{{ fail "config.expectations is /cases: name what is mounted there in cases.existingConfigMap or cases.existingClaim" }}{{ end -}}
{{- end -}}
{{- $given := dict "logFormat" "json" -}}
{{- range $key, $value := $config }}{{ if not (and (kindIs "string" $value) (eq $value "")) }}{{ $_ := set $given $key $value }}{{ end }}{{ end -}}
{{- toPrettyJson $given -}}
{{- end }}

{{- /* What stands together in the folder of secrets; empty if nothing does. */ -}}
{{- define "safe.secretSources" -}}
{{- with .Values.existingSecret }}
- secret:
    name: {{ . }}
{{- end }}
{{- range $variable, $secret := .Values.existingSecretKeys }}
- secret:
    name: {{ $secret.name }}
    items:
      - {key: {{ $secret.key | quote }}, path: {{ $variable | quote }}}
{{- end }}
{{- end }}

{{- /* What is mounted at /cases; empty if nothing is. */ -}}
{{- define "safe.casesVolume" -}}
{{- with .Values.cases -}}
{{- if and .existingConfigMap .existingClaim }}{{ fail "name cases.existingConfigMap or cases.existingClaim, not both" }}{{ end -}}
{{- if .existingConfigMap -}}
configMap:
  name: {{ .existingConfigMap }}
{{- else if .existingClaim -}}
persistentVolumeClaim:
  claimName: {{ .existingClaim }}
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

{{- /* The groups of config/alerts-settings.yml with the values in their places: its first group once for each team. */ -}}
{{- define "safe.settings" -}}
{{- $settings := .Files.Get "files/alerts-settings.yml" | fromYaml -}}
{{- $measures := dict "pass_ratio" "passRatio" "mean_CR" "meanCR" "mean_AC" "meanAC" -}}
{{- $owners := dict -}}
{{- range $group := $settings.groups -}}
{{- $rules := list -}}
{{- range $team := ternary ($.Values.prometheusRule.quality | default (list dict)) (list dict) (eq $group.name "safe-settings-quality") -}}
{{- if hasKey $owners ($team.owner | default "") }}{{ fail (printf "prometheusRule.quality names the owner %s twice; give each its own" $team.owner) }}{{ end -}}
{{- with $team.owner }}{{ $_ := set $owners . true }}{{ end -}}
{{- range $rule := $group.rules -}}
{{- $rule = deepCopy $rule -}}
{{- with $team.owner }}{{ $_ := set $rule.labels "owner" . }}{{ end -}}
{{- if eq $rule.record "safe:quality_watch" -}}
{{- $_ := set $rule "expr" (replace "batch_id=~\"\"" (printf "batch_id=~%q" ($team.batches | default "")) $rule.expr) -}}
{{- with $team.concerns }}{{ $_ := set $rule "expr" (replace "concern_id=~\".*\"" (printf "concern_id=~%q" .) $rule.expr) }}{{ end -}}
{{- with $team.severity }}{{ $_ := set $rule.labels "severity" . }}{{ end -}}
{{- else if eq $rule.record "safe:quality_floor" -}}
{{- $_ := set $rule "expr" (printf "vector(%v)" (get $team (get $measures $rule.labels.measure) | default 0)) -}}
{{- else if eq $rule.record "safe:traffic_expected" -}}
{{- $_ := set $rule "expr" $.Values.prometheusRule.trafficExpected -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- $_ := set $group "rules" $rules -}}
{{- end -}}
{{- toYaml $settings.groups -}}
{{- end }}

{{- /* The groups of one file of alerts; an address before the runbooks makes links of them. */ -}}
{{- define "safe.alerts" -}}
{{- $alerts := .context.Files.Get .file | fromYaml -}}
{{- range $group := $alerts.groups }}{{ range $rule := $group.rules -}}
{{- if and $rule.annotations $.context.Values.prometheusRule.runbooks -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s/%s" (trimSuffix "/" $.context.Values.prometheusRule.runbooks) $rule.annotations.runbook_url) -}}
{{- end -}}
{{- end }}{{ end -}}
{{- toYaml $alerts.groups -}}
{{- end }}

{{- /* What both kinds of monitors say of a scrape. */ -}}
{{- define "safe.endpoint" -}}
- port: http
  path: /metrics
  interval: {{ .interval }}
  relabelings:
    # The name by which the alerts and the dashboard know it.
    - action: replace
      targetLabel: job
      replacement: safe
{{- end }}
