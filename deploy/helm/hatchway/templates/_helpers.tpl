{{/* Names, labels and settings that several templates share. */}}

{{/*
Full name of a release: `hatchway`, or `<release>-hatchway` for a release with another name. At most 38 characters, because Kubernetes
appends to names, and with a letter first, as names of Services need. A name that had to be changed ends with a hash, so that two releases
cannot share a name.
*/}}
{{- define "hatchway.fullname" -}}
{{- $whole := ternary "hatchway" (printf "%s-hatchway" .Release.Name) (eq .Release.Name "hatchway") -}}
{{- $name := $whole | replace "." "-" -}}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "h%s" $name }}{{ end -}}
{{- if or (ne $name $whole) (gt (len $name) 38) -}}
{{- $name = printf "%s-%s" ($name | trunc 29 | trimSuffix "-") (sha256sum $whole | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* Labels that select the pods of a part: (list $ "edge"). They never change, because a Deployment cannot change its selector. */}}
{{- define "hatchway.selector" -}}
app.kubernetes.io/name: hatchway
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "hatchway.labels" -}}
{{ include "hatchway.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | quote }}
{{- end }}

{{/* Image of the server or the client: (list $ "server"). */}}
{{- define "hatchway.image" -}}
{{- $root := index . 0 -}}
{{- printf "%s/hatchway-%s:%s" (trimSuffix "/" $root.Values.image.registry) (index . 1) ($root.Values.image.tag | default $root.Chart.AppVersion) | quote -}}
{{- end }}

{{/* A value as TOML: tables are inline, and strings have the escapes of JSON, which TOML shares. */}}
{{- define "hatchway.tomlValue" -}}
{{- if kindIs "map" . -}}
{ {{- $first := true }}{{ range $key, $value := . }}{{ if not (kindIs "invalid" $value) }}{{ ternary " " ", " $first }}{{ toJson $key }} = {{ include "hatchway.tomlValue" $value }}{{ $first = false }}{{ end }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{ range $index, $value := . }}{{ if $index }}, {{ end }}{{ include "hatchway.tomlValue" $value }}{{ end }}]
{{- else -}}
{{ toJson . | replace "\u007f" "\\u007f" }}
{{- end -}}
{{- end }}

{{/* A config file: top-level values first, then a table for each section. */}}
{{- define "hatchway.toml" -}}
{{- range $key, $value := . }}{{ if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ $key }} = {{ include "hatchway.tomlValue" $value }}
{{- end }}{{ end }}
{{- range $section, $table := . }}{{ if kindIs "map" $table }}{{ if $table }}
[{{ $section }}]
{{- range $key, $value := $table }}{{ if not (kindIs "invalid" $value) }}
{{ $key }} = {{ include "hatchway.tomlValue" $value }}
{{- end }}{{ end }}
{{- end }}{{ end }}{{ end }}
{{- end }}

{{/* Whether the edge has a certificate: "true" or nothing. */}}
{{- define "hatchway.edgeHasTls" -}}
{{- if or .Values.tls.secretName (dig "acme" "enabled" false .Values.config) }}true{{ end -}}
{{- end }}

{{/* Whether the built-in DNS server answers challenges: "true" or nothing. */}}
{{- define "hatchway.hasDns" -}}
{{- if and (dig "acme" "enabled" false .Values.config) (eq (dig "acme" "dns" "none" .Values.config) "builtin") }}true{{ end -}}
{{- end }}

{{/* Address of the platform for the edge. Empty for an edge without a platform. */}}
{{- define "hatchway.platformUrl" -}}
{{- if .Values.edge.platformUrl -}}
{{ .Values.edge.platformUrl }}
{{- else if .Values.platform.enabled -}}
{{ ternary "https" "http" (ne .Values.platform.tls.secretName "") }}://{{ include "hatchway.fullname" . }}-platform.{{ .Release.Namespace }}.svc:{{ int .Values.platform.service.port }}
{{- end -}}
{{- end }}

{{- define "hatchway.credentialSecret" -}}
{{ .Values.edge.credentialSecretName | default (printf "%s-edge-credential" (include "hatchway.fullname" .)) }}
{{- end }}

{{/* Whether the platform of this release calls the API of the edge through the Service inside of the cluster: "true" or nothing. */}}
{{- define "hatchway.apiIsInternal" -}}
{{- if or .Values.edge.internalClusterIP (not (include "hatchway.edgeHasTls" .)) }}true{{ end -}}
{{- end }}

{{/* Ports on which the edge listens. In its own network, the pod needs no port below 1024, because the Service translates the port. */}}
{{- define "hatchway.httpPort" -}}{{ ternary (int .Values.edge.ports.http) 8000 .Values.edge.hostNetwork }}{{- end }}
{{- define "hatchway.httpsPort" -}}{{ ternary (int .Values.edge.ports.https) 8443 .Values.edge.hostNetwork }}{{- end }}

{{/* Settings of edge and platform. They win over `config`, but the schema does not let `config` contain them. */}}
{{- define "hatchway.commonConfig" -}}
data_dir: /data
server:
  domain: {{ .Values.domain | quote }}
  http_port: {{ include "hatchway.httpPort" . }}
  https_port: {{ include "hatchway.httpsPort" . }}
{{- end }}

{{- define "hatchway.platformConfig" -}}
{{- $own := include "hatchway.commonConfig" . | fromYaml -}}
{{- $platform := dict "host" .Values.listen "port" 8080 "public_url" .Values.platform.publicUrl "secret_key_file" "/etc/tunnel/keys/master-key" -}}
{{- if .Values.platform.trustedProxies }}{{ $_ := set $platform "trusted_proxies" .Values.platform.trustedProxies }}{{ end -}}
{{- if .Values.platform.tls.secretName -}}
{{- $_ := set $platform "tls" true -}}
{{- $_ := set $own "tls" (dict "cert_path" "/etc/tunnel/platform-tls/tls.crt" "key_path" "/etc/tunnel/platform-tls/tls.key") -}}
{{- end -}}
{{- if .Values.platform.mail.secretName }}{{ $_ := set $platform "mail" (dict "transport" "smtp" "from" .Values.platform.mail.from) }}{{ end -}}
{{- if .Values.platform.stripe.secretName }}{{ $_ := set $platform "billing" (dict "processor" "stripe") }}{{ end -}}
{{- $_ := set $own "platform" $platform -}}
{{- $_ := set $own "acme" (dict "storage_key_file" "/etc/tunnel/keys/certificate-key") -}}
{{- $_ := set $own "dns" (dict "host" .Values.listen "port" 8053) -}}
{{- include "hatchway.toml" (mergeOverwrite (deepCopy .Values.config) $own) -}}
{{- end }}

{{/* The edge has no [platform] table, so that its pod does not restart when only the platform's settings change. */}}
{{- define "hatchway.edgeConfig" -}}
{{- $own := include "hatchway.commonConfig" . | fromYaml -}}
{{- $server := $own.server -}}
{{- $ports := .Values.edge.ports -}}
{{- $_ := set $server "host" .Values.listen -}}
{{- $_ := set $server "api_host" .Values.listen -}}
{{- $_ := set $server "metrics_host" (ternary .Values.listen "127.0.0.1" .Values.monitoring.enabled) -}}
{{- $_ := set $server "control_port" (int $ports.control) -}}
{{- $_ := set $server "api_port" (int $ports.api) -}}
{{- $_ := set $server "metrics_port" (int $ports.metrics) -}}
{{- $_ := set $server "drain_secs" (int .Values.edge.drainSeconds) -}}
{{- $platformUrl := include "hatchway.platformUrl" . -}}
{{- $hasTls := include "hatchway.edgeHasTls" . -}}
{{- if $platformUrl -}}
{{- $_ := set $server "platform_url" $platformUrl -}}
{{- $_ := set $server "platform_credential_file" "/etc/tunnel/credential/credential" -}}
{{- end -}}
{{- if .Values.edge.apiUrl -}}
{{- $_ := set $server "api_url" .Values.edge.apiUrl -}}
{{- else if not $hasTls -}}
{{- $_ := set $server "api_url" (printf "http://%s-edge-internal.%s.svc:%d" (include "hatchway.fullname" .) .Release.Namespace (int $ports.api)) -}}
{{- end -}}
{{- if or (not $hasTls) (hasPrefix "http:" $platformUrl) }}{{ $_ := set $server "allow_insecure_link" true }}{{ end -}}
{{- if .Values.tls.secretName }}{{ $_ := set $own "tls" (dict "cert_path" "/etc/tunnel/tls/tls.crt" "key_path" "/etc/tunnel/tls/tls.key") }}{{ end -}}
{{- $_ := set $own "limits" (dict "tcp_port_range" (list (int .Values.edge.tcpPorts.from) (int .Values.edge.tcpPorts.to)) "udp_port_range" (list (int .Values.edge.udpPorts.from) (int .Values.edge.udpPorts.to))) -}}
{{- $_ := set $own "udp" (dict "ports" .Values.edge.udpPathPorts) -}}
{{- include "hatchway.toml" (mergeOverwrite (omit (deepCopy .Values.config) "platform") $own) -}}
{{- end }}

{{/* Settings that the image overrides by variables, and the ports in public URLs. */}}
{{- define "hatchway.commonEnv" -}}
- name: TUNNEL_SERVER__HOST
  value: {{ .Values.listen | quote }}
- name: TUNNEL_PLATFORM__HOST
  value: {{ .Values.listen | quote }}
- name: TUNNEL_SERVER__PUBLIC_HTTP_PORT
  value: {{ int .Values.edge.ports.http | quote }}
- name: TUNNEL_SERVER__PUBLIC_HTTPS_PORT
  value: {{ int .Values.edge.ports.https | quote }}
{{- end }}

{{/* An environment variable from a Secret: (list "NAME" "secret" "key"). */}}
{{- define "hatchway.secretEnv" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 | quote }}
      key: {{ index . 2 | quote }}
{{- end }}

{{- define "hatchway.databaseEnv" -}}
{{- with .Values.platform.database -}}
{{ include "hatchway.secretEnv" (list "TUNNEL_DATABASE__URL" .secretName .urlKey) }}
{{- if .directUrlKey }}
{{ include "hatchway.secretEnv" (list "TUNNEL_DATABASE__DIRECT_URL" .secretName .directUrlKey) }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the pods of all parts have in common: (list $ $values). */}}
{{- define "hatchway.podSpec" -}}
{{- $root := index . 0 -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with index . 1 }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Folders of the platform, which keeps everything in the database. The folder of the embedded database cannot be written: otherwise a Secret
with an empty URL would start a database in each pod, and lose it with the pod.
*/}}
{{- define "hatchway.dataMounts" -}}
- { name: data, mountPath: /data }
- { name: no-database, mountPath: /data/postgres, readOnly: true }
- { name: tmp, mountPath: /tmp }
{{- end }}

{{- define "hatchway.dataVolumes" -}}
- { name: data, emptyDir: {} }
- { name: no-database, emptyDir: {} }
- { name: tmp, emptyDir: {} }
{{- end }}

{{/* A Service of the edge for visitors and clients, up to its ports: (list $ $hasAcme). */}}
{{- define "hatchway.publicService" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.edge.service -}}
type: {{ .type }}
{{- if ne .type "ClusterIP" }}
externalTrafficPolicy: {{ .externalTrafficPolicy }}
{{- end }}
{{- if and (eq .type "LoadBalancer") .loadBalancerSourceRanges }}
loadBalancerSourceRanges: {{- toYaml .loadBalancerSourceRanges | nindent 2 }}
{{- end }}
{{- if index $ 1 }}
# The certificate authority must reach the edge before its first certificate, and with it readiness.
publishNotReadyAddresses: true
{{- end }}
selector: {{- include "hatchway.selector" (list $root "edge") | nindent 2 }}
{{- end }}
{{- end }}
