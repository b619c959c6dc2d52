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

{{- /* Tells the rules in one folder from those in another; Choices.suffix in consumer/alerts/rules.py. */ -}}
{{- define "safe.grafanaSuffix" -}}
{{- sha256sum .Values.grafana.alerts.folder | trunc 8 -}}
{{- end }}

{{- /* Grafana's rules, as `safe config alerts --grafana` prints them. */ -}}
{{- define "safe.grafanaAlerts" -}}
{{- $text := .Files.Get "files/grafana-alerts.yml" -}}
{{- with .Values.grafana.alerts -}}
{{- if not .datasourceUid }}{{ fail "set grafana.alerts.datasourceUid to the uid of Grafana's Prometheus data source: it is the end of the data source's address in Grafana" }}{{ end -}}
{{- if kindIs "invalid" .floor }}{{ fail "set grafana.alerts.floor to the pass rate below which a batch alerts, such as 0.8: what is good enough, only you know" }}{{ end -}}
{{- if not .receiver }}{{ $text = regexReplaceAll "(?m)^ *notification_settings: .*\n" $text "" }}{{ end -}}
{{- $told := dict "@DATASOURCE@" .datasourceUid "@FOLDER@" .folder "@RECEIVER@" .receiver "@BATCHES@" .batches "@SUFFIX@" (include "safe.grafanaSuffix" $) -}}
{{- range $name, $value := $told }}{{ $text = replace $name (trimSuffix "\"" (trimPrefix "\"" (toRawJson $value))) $text }}{{ end -}}
{{- $text = replace "@FLOOR@" (toString .floor) $text -}}
{{- with .runbooks }}{{ $text = replace "runbook_url: docs/" (printf "runbook_url: %s/docs/" (trimSuffix "/" .)) $text }}{{ end -}}
{{- end -}}
{{- $text -}}
{{- end }}
