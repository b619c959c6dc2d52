{{- /* What both kinds of monitors say of a scrape. */ -}}
{{- define "safe.endpoint" -}}
- port: http
  path: /metrics
  interval: {{ .interval }}
  {{- with .scrapeTimeout }}
  scrapeTimeout: {{ . }}
  {{- end }}
  {{- with .metricRelabelings }}
  metricRelabelings: {{- toYaml . | nindent 4 }}
  {{- end }}
  relabelings:
    # The name by which the alerts and the dashboard know it.
    - action: replace
      targetLabel: job
      replacement: safe
{{- end }}

{{- define "safe.limits" -}}
{{- toYaml (merge (ternary dict (dict "sampleLimit" .sampleLimit) (kindIs "invalid" .sampleLimit)) .limits) }}
{{- end }}
