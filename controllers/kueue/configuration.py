"""What Kueue's ``Configuration`` may hold: a file with a typing error must not quietly mean the defaults.

Mirrors the strict decoding of Kueue's ``apis/config/v1beta2`` (with the fields that v1beta1 has besides), and what its validation says of the values that
kubemini reads. Sections that only concern a real deployment are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubemini.machinery import duration
from kubemini.machinery.errors import ConfigError, shown

Check = Callable[[Any, str], None]
"""Raises `ConfigError` where a value is not what the field of that path may hold."""

KNOWN_FRAMEWORKS: Final = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "pod",
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "kubeflow.org/jaxjob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "sparkoperator.k8s.io/sparkapplication",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
)


_NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def check(configuration: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for a field that does not exist or a value that it cannot have; the message names its path."""
    _CONFIGURATION(configuration, "")


def _wrong(path: str, value: Any, wanted: str) -> ConfigError:
    return ConfigError(f"kueue configuration: {path or 'the whole'}: must be {wanted}, not {shown(value)}")


def _anything(_value: Any, _path: str) -> None:
    pass


def _of(kind: type, wanted: str) -> Check:
    def check_type(value: Any, path: str) -> None:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _wrong(path, value, wanted)

    return check_type


def _one_of(*choices: str) -> Check:
    def check_choice(value: Any, path: str) -> None:
        if value not in choices:
            raise _wrong(path, value, f"one of {', '.join(choices)}")

    return check_choice


def _duration(value: Any, path: str) -> None:
    try:
        length = duration.parse(value)
    except (TypeError, ValueError):
        raise _wrong(path, value, "a duration such as 5m30s") from None
    if length < 0:
        raise _wrong(path, value, "a duration that is not negative")


def _duration_or(refusal: str) -> Check:
    """Check a duration that upstream refuses by its own words when it is negative."""

    def check_duration(value: Any, path: str) -> None:
        try:
            length = duration.parse(value)
        except (TypeError, ValueError):
            raise _wrong(path, value, "a duration such as 5m30s") from None
        if length < 0:
            raise ConfigError(f"kueue configuration: {path}: Invalid value: {duration.shown(length)}: {refusal}")

    return check_duration


def _weights(value: Any, path: str) -> None:
    _map(_number)(value, path)
    for name, weight in value.items():
        if weight < 0:
            raise ConfigError(f"kueue configuration: {path}[{name}]: Invalid value: {shown(weight)}: {_NOT_NEGATIVE}")


def _number(value: Any, path: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(path, value, "a number")


def _list(item: Check) -> Check:
    def check_list(value: Any, path: str) -> None:
        if not isinstance(value, list | tuple):
            raise _wrong(path, value, "a list")
        for index, each in enumerate(value):
            item(each, f"{path}[{index}]")

    return check_list


def _map(item: Check) -> Check:
    def check_map(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(path, value, "a map")
        for key, each in value.items():
            item(each, f"{path}.{key}")

    return check_map


def _fields(required: tuple[str, ...] = (), **fields: Check) -> Check:
    def check_fields(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(path, value, "an object")
        for key, each in value.items():
            where = f"{path}.{key}" if path else str(key)
            if key not in fields:
                raise ConfigError(f"kueue configuration: {where}: no such field; there are {', '.join(fields)}")
            if each is not None:
                fields[key](each, where)
        for key in required:
            if value.get(key) is None:
                raise ConfigError(f"kueue configuration: {path}.{key}: is required")

    return check_fields


_flag = _of(bool, "true or false")
_text = _of(str, "a text")
_whole = _of(int, "a whole number")
_STRATEGIES = _list(_one_of("LessThanOrEqualToFinalShare", "LessThanInitialShare"))

_CONFIGURATION: Final = _fields(
    apiVersion=_one_of("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1"),
    kind=_one_of("Configuration"),
    namespace=_text,
    webhook=_anything,
    leaderElection=_anything,
    metrics=_anything,
    health=_anything,
    pprofBindAddress=_text,
    controller=_anything,
    tls=_anything,
    manageJobsWithoutQueueName=_flag,
    managedJobsNamespaceSelector=_fields(matchLabels=_map(_text), matchExpressions=_list(_of(dict, "an object"))),
    internalCertManagement=_anything,
    waitForPodsReady=_fields(
        enable=_flag,
        timeout=_duration,
        blockAdmission=_flag,
        recoveryTimeout=_duration,
        requeuingStrategy=_fields(
            timestamp=_one_of("Eviction", "Creation"), backoffLimitCount=_whole, backoffBaseSeconds=_whole, backoffMaxSeconds=_whole
        ),
    ),
    clientConnection=_anything,
    integrations=_fields(
        frameworks=_list(_one_of(*KNOWN_FRAMEWORKS)), externalFrameworks=_list(_text), labelKeysToCopy=_list(_text), podOptions=_anything
    ),
    queueVisibility=_anything,
    multiKueue=_anything,
    fairSharing=_fields(enable=_flag, preemptionStrategies=_STRATEGIES),
    admissionFairSharing=_fields(
        usageHalfLifeTime=_duration_or(_NOT_NEGATIVE), usageSamplingInterval=_duration_or("must be greater than 0"), resourceWeights=_weights
    ),
    resources=_fields(
        excludeResourcePrefixes=_list(_text),
        transformations=_list(_fields(("input",), input=_text, strategy=_one_of("Retain", "Replace"), multiplyBy=_text, outputs=_map(_anything))),
        deviceClassMappings=_anything,
        quotaCheckStrategy=_one_of("BlockUndeclared", "IgnoreUndeclared"),
    ),
    quotaCheckStrategy=_one_of("BlockUndeclared", "IgnoreUndeclared"),
    featureGates=_map(_flag),
    objectRetentionPolicies=_fields(workloads=_fields(afterFinished=_duration, afterDeactivatedByKueue=_duration)),
)
