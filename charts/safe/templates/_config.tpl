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
