{{- define "gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "gateway.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "gateway.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "gateway.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ include "gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gateway.image" -}}
{{- $repository := required "image.repository: name the image that you made with deploy/container/Containerfile" .Values.image.repository }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* Combinations that would lose keys, money or secrets. */}}
{{- define "gateway.check" -}}
{{- if not .Values.storage.database.secret }}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) }}
{{- fail "storage.database: several gateways need a PostgreSQL that they share; name the Secret of its address, or set replicas: 1 and persistence.enabled: true" }}
{{- end }}
{{- if not .Values.persistence.enabled }}
{{- fail "persistence.enabled: without storage.database keys and spending are in a file, which needs a volume" }}
{{- end }}
{{- if .Values.storage.counters.secret }}
{{- fail "storage.counters: Redis or Valkey counts beside PostgreSQL only; set storage.database too" }}
{{- end }}
{{- end }}
{{- if not .Values.secrets.adminToken.secret }}
{{- fail "secrets.adminToken: name the Secret of the admin token, so that the gateway does not write one to its log" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.secrets.metricsToken.secret) }}
{{- fail "secrets.metricsToken: serviceMonitor needs the Secret of the token that opens /metrics" }}
{{- end }}
{{- end }}

{{- /* Secrets as files: name of the file, its Secret and key. */}}
{{- define "gateway.files" -}}
admin-token: {{ toJson .Values.secrets.adminToken }}
metrics-token: {{ toJson .Values.secrets.metricsToken }}
first-key: {{ toJson .Values.secrets.firstKey }}
pepper: {{ toJson .Values.secrets.pepper }}
content-key: {{ toJson .Values.secrets.contentKey }}
database: {{ toJson .Values.storage.database }}
counters: {{ toJson .Values.storage.counters }}
{{- end }}

{{- define "gateway.config" -}}
{{- $at := "/etc/model-gateway" }}
{{- $set := dict
  "listen" "0.0.0.0:8686"
  "admin_listen" "0.0.0.0:8687"
  "admin_public" true
  "data_dir" "/var/lib/model-gateway"
  "drain" (dict
    "wait" (printf "%ds" (int .Values.drain.waitSeconds))
    "limit" (printf "%ds" (int .Values.drain.limitSeconds))) }}
{{- if .Values.storage.database.secret }}
{{- $storage := dict "database" (printf "${file:%s/secrets/database}" $at) }}
{{- if .Values.storage.counters.secret }}
{{- $_ := set $storage "counters" (printf "${file:%s/secrets/counters}" $at) }}
{{- end }}
{{- $_ := set $set "storage" $storage }}
{{- end }}
{{- if .Values.tls.secret }}
{{- $_ := set $set "tls" (dict "cert" (printf "%s/tls/tls.crt" $at) "key" (printf "%s/tls/tls.key" $at)) }}
{{- end }}
{{- if .Values.adminTls.secret }}
{{- $_ := set $set "admin_tls" (dict "cert" (printf "%s/admin-tls/tls.crt" $at) "key" (printf "%s/admin-tls/tls.key" $at)) }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.config) $set | toYaml }}
{{- end }}
