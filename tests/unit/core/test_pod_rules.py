"""What the API server refuses in pod specs, and how it says so."""

from typing import Any

import pytest

C = "spec.containers[0]"

CONTAINER_RULES: list[tuple[dict[str, Any], list[str]]] = [
    ({"name": ""}, [f"{C}.name: Required value"]),
    ({"name": "a.b"}, [f'{C}.name: Invalid value: "a.b": must not contain dots']),
    ({"image": ""}, [f"{C}.image: Required value"]),
    ({"image": " i"}, [f'{C}.image: Invalid value: " i": must not have leading or trailing whitespace']),
    ({"imagePullPolicy": "Odd"}, [f'{C}.imagePullPolicy: Unsupported value: "Odd": supported values: "Always", "IfNotPresent", "Never"']),
    (
        {"terminationMessagePolicy": "Odd"},
        [f'{C}.terminationMessagePolicy: Unsupported value: "Odd": supported values: "File", "FallbackToLogsOnError"'],
    ),
    (
        {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
        [f'{C}.ports[1].name: Duplicate value: "a"'],
    ),
    ({"ports": [{"containerPort": 80, "hostPort": 70000}]}, [f"{C}.ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
    (
        {"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]},
        [f'{C}.ports[1].hostPort: Duplicate value: "TCP//5"'],
    ),
    (
        {"env": [{"name": "A", "valueFrom": {}}]},
        [
            f'{C}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
        ],
    ),
    (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]},
        [
            (
                f'{C}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", '
                '"metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
            )
        ],
    ),
    (
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1k"}}}]},
        [
            f'{C}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource'
        ],
    ),
    ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": ""}}}]}, [f"{C}.env[0].valueFrom.secretKeyRef.key: Required value"]),
    ({"envFrom": [{}]}, [f'{C}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`']),
    ({"livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}}, [f"{C}.livenessProbe.successThreshold: Invalid value: 2: must be 1"]),
    (
        {"readinessProbe": {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 1}},
        [f"{C}.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes"],
    ),
    (
        {"startupProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
        [f"{C}.startupProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    ),
    ({"lifecycle": {"preStop": {"exec": {}}}}, [f"{C}.lifecycle.preStop.exec.command: Required value"]),
    (
        {"lifecycle": {"preStop": {"sleep": {"seconds": 60}}}},
        [f"{C}.lifecycle.preStop.sleep: Invalid value: 60: must be non-negative and less than terminationGracePeriodSeconds (30)"],
    ),
    (
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
        [
            (
                f'{C}.securityContext: Invalid value: {{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,'
                '"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,'
                '"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: '
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            )
        ],
    ),
    ({"securityContext": {"runAsUser": -1}}, [f"{C}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
    (
        {"resources": {"limits": {"hugepages-2Mi": "3Mi"}, "requests": {"cpu": "1"}}},
        [
            f'{C}.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
            f'{C}.resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
        ],
    ),
    ({"resources": {"limits": {"hugepages-2Mi": "4Mi"}}}, [f"{C}.resources: Forbidden: HugePages require cpu or memory"]),
    (
        {"resources": {"claims": [{"name": "gpu"}]}},
        [f'{C}.resources.claims[0]: Not found: "gpu": must be one of the names in pod.spec.resourceClaims which is empty'],
    ),
    (
        {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
        [f"{C}.restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
    ),
    (
        {"resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]},
        [f'{C}.resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"'],
    ),
]


@pytest.mark.parametrize("container, expected", CONTAINER_RULES)
def test_a_wrong_container_is_refused_with_its_cause(desk: Any, container: dict[str, Any], expected: list[str]) -> None:
    """Each broken rule of a container is one cause with upstream's field and text."""
    assert desk.pod_causes(container) == expected


VOLUME_RULES: list[tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]] = [
    ([{"name": "v", "hostPath": {"path": ""}}], [], ["spec.volumes[0].hostPath.path: Required value"]),
    ([{"name": "v", "hostPath": {"path": "/a/../b"}}], [], ["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"]),
    ([{"name": "", "emptyDir": {}}], [], ["spec.volumes[0].name: Required value"]),
    (
        [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "/a"}]}}],
        [],
        ['spec.volumes[0].configMap.items[0].path: Invalid value: "/a": must be a relative path'],
    ),
    (
        [{"name": "v", "secret": {"secretName": "s", "defaultMode": 4096}}],
        [],
        ["spec.volumes[0].secret.defaultMode: Invalid value: 4096: must be a number between 0 and 0777 (octal), both inclusive"],
    ),
    ([{"name": "v", "persistentVolumeClaim": {"claimName": ""}}], [], ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"]),
    (
        [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1}}]}}],
        [],
        [
            "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes"
        ],
    ),
    (
        [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}}],
        [],
        ["spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required"],
    ),
    ([], [{"name": "v", "mountPath": "/a"}], ['spec.containers[0].volumeMounts[0].name: Not found: "v"']),
    (
        [{"name": "v", "emptyDir": {}}],
        [{"name": "v", "mountPath": "/a", "subPath": "/b"}],
        ['spec.containers[0].volumeMounts.subPath: Invalid value: "/b": must be a relative path'],
    ),
    (
        [{"name": "v", "emptyDir": {}}],
        [{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}],
        ["spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"],
    ),
]


@pytest.mark.parametrize("volumes, mounts, expected", VOLUME_RULES)
def test_a_wrong_volume_or_mount_is_refused(desk: Any, volumes: list[Any], mounts: list[Any], expected: list[str]) -> None:
    """Volumes have one source each, and mounts name volumes that are there."""
    assert desk.pod_causes({"volumeMounts": mounts}, volumes=volumes, automountServiceAccountToken=False) == expected


SPEC_RULES: list[tuple[dict[str, Any], list[str]]] = [
    ({"hostNetwork": True, "hostUsers": False}, ["spec.hostNetwork: Forbidden: when `pod.Spec.HostUsers` is false"]),
    ({"dnsPolicy": "None"}, ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
    (
        {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}},
        ['spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]: must not have more than 3 nameservers'],
    ),
    (
        {"hostAliases": [{"ip": "x", "hostnames": ["a"]}]},
        ['spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, ['spec.schedulingGates[1]: Duplicate value: "a"']),
    (
        {"preemptionPolicy": "PreemptLowerPriority", "os": {"name": "plan9"}},
        ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
    ),
    (
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]}}},
        ["spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100"],
    ),
    (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "matchLabelKeys": ["a"]}]}}},
        [
            (
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: "
                "Forbidden: must not be specified when labelSelector is not set"
            )
        ],
    ),
    (
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]},
        [
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        ],
    ),
    (
        {"resourceClaims": [{"name": "a"}]},
        [
            'spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'
        ],
    ),
    (
        {"securityContext": {"sysctls": [{"name": "A b"}]}},
        [
            r'spec.securityContext.sysctls[0].name: Invalid value: "A b": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$'
        ],
    ),
    (
        {"resources": {"requests": {"cpu": "1"}}, "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]},
        ['spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2'],
    ),
]


@pytest.mark.parametrize("spec, expected", SPEC_RULES)
def test_a_wrong_pod_spec_is_refused(desk: Any, spec: dict[str, Any], expected: list[str]) -> None:
    """Rules of the spec as a whole have upstream's fields and texts."""
    assert desk.pod_causes(**spec) == expected


INIT_RULES: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"livenessProbe": {"exec": {"command": ["x"]}}},
        ["spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"],
    ),
    ({"livenessProbe": {}, "restartPolicy": "Always"}, ["spec.initContainers[0].livenessProbe: Required value: must specify a handler type"]),
    ({"restartPolicy": "Odd"}, ['spec.initContainers[0].restartPolicy: Unsupported value: "Odd": supported values: "Always", "Never", "OnFailure"']),
]


@pytest.mark.parametrize("container, expected", INIT_RULES)
def test_init_containers_have_rules_of_their_own(desk: Any, container: dict[str, Any], expected: list[str]) -> None:
    """Probes and hooks belong to sidecars only."""
    assert desk.pod_causes(initContainers=[{"name": "i", "image": "i", **container}]) == expected


def test_the_verdict_on_a_shared_template_does_not_hide_what_differs(desk: Any) -> None:
    """A pod that shares its containers with a valid one is still refused for a wrong host name, node or node selector."""
    shared = desk.pod()["spec"]
    for key, value in (("hostname", "A"), ("subdomain", "-"), ("nodeSelector", {"a b": "c"})):
        assert [each.partition(":")[0] for each in desk.causes("Pod", name="y", spec={**shared, key: value})] == [f"spec.{key}"]


def test_deletion_cost_must_be_a_number(desk: Any) -> None:
    """The annotation that orders victims is checked on every pod, whatever its spec."""
    key = "controller.kubernetes.io/pod-deletion-cost"
    desk.pod(name="a", meta={"annotations": {key: "-5"}})
    assert desk.causes("Pod", name="b", meta={"annotations": {key: "+5"}}, spec={"containers": [{"name": "c", "image": "i"}]}) == [
        f'metadata.annotations[{key}]: Invalid value: "+5": must be a 32bit integer'
    ]
