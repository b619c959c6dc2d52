{{- /* What a worker and the pod of `helm test` have in common: variables, mounts and volumes. */ -}}
{{- define "safe.env" -}}
{{- $secrets := include "safe.secretSources" . -}}
# The default is loopback, where no probe reaches it.
- {name: SAFE_V0_HTTP_ADDRESS, value: "0.0.0.0:9464"}
{{- if $secrets }}
- {name: SAFE_V0_SECRETS_DIR, value: /etc/safe/secrets}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name | quote }}, value: {{ $value | quote }}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "safe.mounts" -}}
{{- $cases := include "safe.casesVolume" . -}}
{{- $secrets := include "safe.secretSources" . -}}
- {name: config, mountPath: /etc/safe/config, readOnly: true}
{{- if $secrets }}
- {name: secrets, mountPath: /etc/safe/secrets, readOnly: true}
{{- end }}
{{- if .Values.existingTlsSecret }}
- {name: tls, mountPath: /etc/safe/tls, readOnly: true}
{{- end }}
{{- if $cases }}
- {name: cases, mountPath: /cases, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "safe.volumes" -}}
{{- $cases := include "safe.casesVolume" . -}}
{{- $secrets := include "safe.secretSources" . -}}
- name: config
  configMap:
    name: {{ include "safe.name" . }}
{{- with $secrets }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- . | trim | nindent 6 }}
{{- end }}
{{- with .Values.existingTlsSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with $cases }}
- name: cases
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
