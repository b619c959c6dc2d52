"""The schema of the chart's values: ours of the configuration file with the rest of values.yaml around it."""

import re
from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

# What Go's regular expressions lack: looking ahead, and \u.
_LOOK_AHEAD = re.compile(r"\(\?!.*?\$\)")


def _object(properties: Mapping[str, Schema], *, required: tuple[str, ...] = ()) -> Schema:
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    return schema | ({"required": list(required)} if required else {})


def _text(*, minimum: int = 0, pattern: str = "") -> Schema:
    return {"type": "string"} | ({"minLength": minimum} if minimum else {}) | ({"pattern": pattern} if pattern else {})


_TEXT = _text()
_FLAG: Schema = {"type": "boolean"}
_ANY_OBJECT: Schema = {"type": "object"}
_ANY_LIST: Schema = {"type": "array"}
_NAMED: Schema = {"type": "array", "items": {"type": "object", "required": ["name"]}}
_LINK = _text(pattern="^(https?://.+)?$")
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_POSITIVE: Schema = {"type": "integer", "minimum": 1}
_RATIO: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SHARE: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, _text(pattern="^(100|[0-9]{1,2})%$")]}
_TEAM = _object(
    {
        "owner": _text(minimum=1),
        "batches": _text(minimum=1),
        "concerns": _text(minimum=1),
        "severity": {"enum": ["ticket", "page"]},
        "passRatio": _RATIO,
        "meanCR": _RATIO,
        "meanAC": _RATIO,
    },
    required=("owner", "batches"),
)
_LIMITS = ("sampleLimit", "targetLimit", "labelLimit", "labelNameLengthLimit", "labelValueLengthLimit")
_MONITOR = _object(
    {
        "enabled": _FLAG,
        "interval": _text(pattern="^[0-9]+(ms|s|m)$"),
        "scrapeTimeout": _text(pattern="^([0-9]+(ms|s|m))?$"),
        "sampleLimit": {"type": ["integer", "null"], "minimum": 1},
        "metricRelabelings": _ANY_LIST,
        "labels": _TEXTS,
        "limits": _object({name: {"type": "integer", "minimum": 1} for name in _LIMITS}),
    }
)
_VALUES: Mapping[str, Schema] = {
    "global": _ANY_OBJECT,  # Helm gives it to every chart
    "enabled": {"type": "boolean"},  # the condition of a dependency, which Helm hands on to it
    "image": _object(
        {
            "repository": _TEXT,
            "tag": _TEXT,
            "digest": _text(pattern="^(sha256:[0-9a-f]{64})?$"),
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        }
    ),
    "fullnameOverride": _text(pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"),
    "commonLabels": _TEXTS,
    "imagePullSecrets": {"type": "array", "items": _object({"name": _text(minimum=1)}, required=("name",))},
    "role": {"enum": ["all", "scorer", "aggregator"]},
    "replicas": {"type": ["integer", "null"], "minimum": 0},
    "autoscaling": _object(
        {
            "by": {"enum": ["", "cpu", "lag"]},
            "minReplicas": _POSITIVE,
            "maxReplicas": _POSITIVE,
            "cpuPercent": _POSITIVE,
            "lagPerWorker": _POSITIVE,
            "triggerAuthentication": _TEXT,
        }
    )
    | {"type": ["object", "string"], "if": {"type": "string"}, "then": {"enum": ["cpu", "lag"]}},
    "config": {"$ref": "#/$defs/config"},
    "env": _TEXTS | {"propertyNames": {"not": {"pattern": "^SAFE_V0_"}}},
    "extraEnv": _NAMED,
    "extraEnvFrom": _ANY_LIST,
    "extraContainers": _NAMED,
    "extraVolumes": _NAMED,
    "extraVolumeMounts": _NAMED,
    "existingSecret": _TEXT,
    "existingSecretKeys": {
        "type": "object",
        "propertyNames": {"pattern": "^SAFE_V0_[A-Z0-9_]+$"},
        "additionalProperties": _object({"name": _text(minimum=1), "key": _text(minimum=1)}, required=("name", "key")),
    },
    "existingTlsSecret": _TEXT,
    "cases": _object({"existingConfigMap": _TEXT, "existingClaim": _TEXT}),
    "restoreSeconds": {"type": "integer", "minimum": 1},
    "resources": _ANY_OBJECT,
    "serviceAccount": _object({"create": _FLAG, "name": _TEXT, "annotations": _TEXTS}),
    "podSecurityContext": _ANY_OBJECT,
    "securityContext": _ANY_OBJECT,
    "podAnnotations": _TEXTS,
    "podLabels": _TEXTS,
    "nodeSelector": _TEXTS,
    "tolerations": _ANY_LIST,
    "affinity": _ANY_OBJECT,
    "priorityClassName": _TEXT,
    "dnsConfig": _ANY_OBJECT,
    "dnsPolicy": {"enum": ["", "ClusterFirst", "Default", "ClusterFirstWithHostNet", "None"]},
    "topologySpreadConstraints": _ANY_LIST,
    "podDisruptionBudget": _object({"enabled": _FLAG, "maxUnavailable": _SHARE}),
    "networkPolicy": _object({"enabled": _FLAG, "ingressFrom": _ANY_LIST, "egress": _ANY_LIST}),
    "service": _object({"enabled": _FLAG, "annotations": _TEXTS}),
    "podMonitor": _MONITOR,
    "serviceMonitor": _MONITOR,
    "prometheusRule": _object(
        {
            "enabled": _FLAG,
            "labels": _TEXTS,
            "annotations": _TEXTS,
            "runbooks": _LINK,
            "quality": {"type": "array", "items": _TEAM},
            "trafficExpected": _text(minimum=1),
        }
    ),
    "dashboard": _object({"enabled": _FLAG, "namespace": _TEXT, "labels": _TEXTS, "annotations": _TEXTS}),
    "grafana": _object(
        {
            "alerts": _object(
                {
                    "enabled": _FLAG,
                    "datasourceUid": _TEXT,
                    # `helm --set` makes a string of 0.8.
                    "floor": {
                        "type": ["number", "string", "null"],
                        "minimum": 0,
                        "maximum": 1,
                        "pattern": r"^(0(\.[0-9]+)?|1(\.0+)?)$",
                    },
                    "batches": _text(minimum=1),
                    "folder": _text(minimum=1),
                    "receiver": _TEXT,
                    "runbooks": _LINK,
                    "namespace": _TEXT,
                    "labels": _TEXTS,
                    "annotations": _TEXTS,
                }
            )
        }
    ),
    "kafkaTopics": _object(
        {"enabled": _FLAG, "cluster": _TEXT, "namespace": _TEXT, "partitions": _POSITIVE, "replicas": _POSITIVE}
    ),
}


def values_schema(configuration: Schema) -> Schema:
    """Make the schema of the values from that of the configuration file."""
    inner = {key: value for key, value in configuration.items() if key not in {"$schema", "$defs"}}
    # For editors of the file itself. What else does not belong into values, the templates refuse in words.
    inner["properties"] = {key: each for key, each in inner["properties"].items() if key != "$schema"}
    return {
        "$schema": configuration["$schema"],
        "title": "Values of the chart safe",
        **_object(_VALUES),
        "$defs": _for_go({"config": inner} | configuration["$defs"]),
    }


def _for_go(schema: Any) -> Any:
    """Take out of a schema what Go's regular expressions cannot read: it then takes a little more."""
    if isinstance(schema, list):
        return [_for_go(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _for_go(each) for key, each in schema.items() if "\\u" not in _pattern_in(each)}
    if isinstance(kept.get("pattern"), str):
        kept["pattern"] = _LOOK_AHEAD.sub("", kept["pattern"])
    return kept


def _pattern_in(schema: Any) -> str:
    return str(schema.get("pattern", "")) if isinstance(schema, dict) else ""
