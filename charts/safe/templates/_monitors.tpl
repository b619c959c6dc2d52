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
