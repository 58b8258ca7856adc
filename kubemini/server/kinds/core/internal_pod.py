"""Pod templates as field errors show them: the internal types of ``pkg/apis/core`` (1.36), whose fields have an order of their own."""

from __future__ import annotations

from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.server.kinds.internal_types import LABEL_SELECTOR, Held, Struct, Template

_OF_SPEC: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""What the API has in the spec, and the internal types in its security context."""

_REFERENCE: Final = Struct(Name="")
_ITEMS: Final = Struct(Key="", Path="", Mode=None)

# ----------------------------------------------------------------------------------------------- security

_SE_LINUX: Final = Struct(User="", Role="", Type="", Level="")
_WINDOWS: Final = Struct(GMSACredentialSpecName=None, GMSACredentialSpec=None, RunAsUserName=None, HostProcess=None)
_PROFILE: Final = Struct(Type="", LocalhostProfile=None)
SECURITY_CONTEXT: Final = Struct(
    Capabilities=Struct(Add=None, Drop=None),
    Privileged=None,
    SELinuxOptions=_SE_LINUX,
    WindowsOptions=_WINDOWS,
    RunAsUser=None,
    RunAsGroup=None,
    RunAsNonRoot=None,
    ReadOnlyRootFilesystem=None,
    AllowPrivilegeEscalation=None,
    ProcMount=None,
    SeccompProfile=_PROFILE,
    AppArmorProfile=_PROFILE,
)
_POD_SECURITY_CONTEXT: Final = Struct(
    HostNetwork=False,
    HostPID=False,
    HostIPC=False,
    ShareProcessNamespace=None,
    HostUsers=None,
    SELinuxOptions=_SE_LINUX,
    WindowsOptions=_WINDOWS,
    RunAsUser=None,
    RunAsGroup=None,
    RunAsNonRoot=None,
    SupplementalGroups=None,
    SupplementalGroupsPolicy=None,
    FSGroup=None,
    FSGroupChangePolicy=None,
    Sysctls=Struct(Name="", Value=""),
    SeccompProfile=_PROFILE,
    AppArmorProfile=_PROFILE,
    SELinuxChangePolicy=None,
)

# ----------------------------------------------------------------------------------------------- scheduling

_REQUIREMENT: Final = Struct(Key="", Operator="", Values=None)
NODE_SELECTOR_TERM: Final = Struct(MatchExpressions=_REQUIREMENT, MatchFields=_REQUIREMENT)
_POD_TERM: Final = {
    "LabelSelector": LABEL_SELECTOR,
    "Namespaces": None,
    "TopologyKey": "",
    "NamespaceSelector": LABEL_SELECTOR,
    "MatchLabelKeys": None,
    "MismatchLabelKeys": None,
}
_POD_AFFINITY: Final = Struct(
    RequiredDuringSchedulingIgnoredDuringExecution=Struct(**_POD_TERM),
    PreferredDuringSchedulingIgnoredDuringExecution=Struct(Weight=0, PodAffinityTerm=Held(**_POD_TERM)),
)
_AFFINITY: Final = Struct(
    NodeAffinity=Struct(
        RequiredDuringSchedulingIgnoredDuringExecution=Struct(NodeSelectorTerms=NODE_SELECTOR_TERM),
        PreferredDuringSchedulingIgnoredDuringExecution=Struct(Weight=0, Preference=Held(MatchExpressions=_REQUIREMENT, MatchFields=_REQUIREMENT)),
    ),
    PodAffinity=_POD_AFFINITY,
    PodAntiAffinity=_POD_AFFINITY,
)
_SPREAD: Final = Struct(
    MaxSkew=0,
    TopologyKey="",
    WhenUnsatisfiable="",
    LabelSelector=LABEL_SELECTOR,
    MinDomains=None,
    NodeAffinityPolicy=None,
    NodeTaintsPolicy=None,
    MatchLabelKeys=None,
)
RESOURCE_CLAIM: Final = Struct(Name="", ResourceClaimName=None, ResourceClaimTemplateName=None)

# ----------------------------------------------------------------------------------------------- containers

_RESOURCES: Final = {"Limits": None, "Requests": None, "Claims": Struct(Name="", Request="")}
_FIELD: Final = Struct(APIVersion="", FieldPath="")
_RESOURCE_FIELD: Final = Struct(ContainerName="", Resource="", Divisor="0")
_NAMED: Final = Struct(Name="", Optional=None)
_KEY: Final = Struct(Name="", Key="", Optional=None)
_ENV: Final = Struct(
    Name="",
    Value="",
    ValueFrom=Struct(
        FieldRef=_FIELD,
        ResourceFieldRef=_RESOURCE_FIELD,
        ConfigMapKeyRef=_KEY,
        SecretKeyRef=_KEY,
        FileKeyRef=Struct(VolumeName="", Path="", Key="", Optional=None),
    ),
)
_EXEC: Final = Struct(Command=None)
_HTTP_GET: Final = Struct(Path="", Port=0, Host="", Scheme="", HTTPHeaders=Struct(Name="", Value=""))
_TCP_SOCKET: Final = Struct(Port=0, Host="")
_PROBE: Final = Struct(
    Exec=_EXEC,
    HTTPGet=_HTTP_GET,
    TCPSocket=_TCP_SOCKET,
    GRPC=Struct(Port=0, Service=None),
    InitialDelaySeconds=0,
    TimeoutSeconds=0,
    PeriodSeconds=0,
    SuccessThreshold=0,
    FailureThreshold=0,
    TerminationGracePeriodSeconds=None,
)
_HANDLER: Final = Struct(Exec=_EXEC, HTTPGet=_HTTP_GET, TCPSocket=_TCP_SOCKET, Sleep=Struct(Seconds=0))
_CONTAINER: Final = {
    "Name": "",
    "Image": "",
    "Command": None,
    "Args": None,
    "WorkingDir": "",
    "Ports": Struct(Name="", HostPort=0, ContainerPort=0, Protocol="", HostIP=""),
    "EnvFrom": Struct(Prefix="", ConfigMapRef=_NAMED, SecretRef=_NAMED),
    "Env": _ENV,
    "Resources": Held(**_RESOURCES),
    "ResizePolicy": Struct(ResourceName="", RestartPolicy=""),
    "RestartPolicy": None,
    "RestartPolicyRules": Struct(Action="", ExitCodes=Struct(Operator="", Values=None)),
    "VolumeMounts": Struct(Name="", ReadOnly=False, RecursiveReadOnly=None, MountPath="", SubPath="", MountPropagation=None, SubPathExpr=""),
    "VolumeDevices": Struct(Name="", DevicePath=""),
    "LivenessProbe": _PROBE,
    "ReadinessProbe": _PROBE,
    "StartupProbe": _PROBE,
    "Lifecycle": Struct(PostStart=_HANDLER, PreStop=_HANDLER, StopSignal=None),
    "TerminationMessagePath": "",
    "TerminationMessagePolicy": "",
    "ImagePullPolicy": "",
    "SecurityContext": SECURITY_CONTEXT,
    "Stdin": False,
    "StdinOnce": False,
    "TTY": False,
}
EPHEMERAL_CONTAINER: Final = Struct(**_CONTAINER, TargetContainerName="")

# ----------------------------------------------------------------------------------------------- volumes

_DOWNWARD_ITEMS: Final = Struct(Path="", FieldRef=_FIELD, ResourceFieldRef=_RESOURCE_FIELD, Mode=None)
_PROJECTED_KEYS: Final = Struct(Name="", Items=_ITEMS, Optional=None)
_PROJECTION: Final = Struct(
    Secret=_PROJECTED_KEYS,
    DownwardAPI=Struct(Items=_DOWNWARD_ITEMS),
    ConfigMap=_PROJECTED_KEYS,
    ServiceAccountToken=Struct(Audience="", ExpirationSeconds=0, Path=""),
    ClusterTrustBundle=Struct(Name=None, SignerName=None, LabelSelector=LABEL_SELECTOR, Optional=None, Path=""),
    PodCertificate=Struct(
        SignerName="",
        KeyType="",
        MaxExpirationSeconds=None,
        CredentialBundlePath="",
        KeyPath="",
        CertificateChainPath="",
        UserAnnotations=None,
    ),
)
CLAIM_SPEC: Final = Held(
    AccessModes=None,
    Selector=LABEL_SELECTOR,
    Resources=Held(Limits=None, Requests=None),
    VolumeName="",
    StorageClassName=None,
    VolumeMode=None,
    DataSource=Struct(APIGroup=None, Kind="", Name=""),
    DataSourceRef=Struct(APIGroup=None, Kind="", Name="", Namespace=None),
    VolumeAttributesClassName=None,
)
_VOLUME: Final = Struct(
    Name="",
    HostPath=Struct(Path="", Type=None),
    EmptyDir=Struct(Medium="", SizeLimit=None),
    GCEPersistentDisk=Struct(PDName="", FSType="", Partition=0, ReadOnly=False),
    AWSElasticBlockStore=Struct(VolumeID="", FSType="", Partition=0, ReadOnly=False),
    GitRepo=Struct(Repository="", Revision="", Directory=""),
    Secret=Struct(SecretName="", Items=_ITEMS, DefaultMode=None, Optional=None),
    NFS=Struct(Server="", Path="", ReadOnly=False),
    ISCSI=Struct(
        TargetPortal="",
        IQN="",
        Lun=0,
        ISCSIInterface="",
        FSType="",
        ReadOnly=False,
        Portals=None,
        DiscoveryCHAPAuth=False,
        SessionCHAPAuth=False,
        SecretRef=_REFERENCE,
        InitiatorName=None,
    ),
    Glusterfs=Struct(EndpointsName="", Path="", ReadOnly=False),
    PersistentVolumeClaim=Struct(ClaimName="", ReadOnly=False),
    RBD=Struct(CephMonitors=None, RBDImage="", FSType="", RBDPool="", RadosUser="", Keyring="", SecretRef=_REFERENCE, ReadOnly=False),
    Quobyte=Struct(Registry="", Volume="", ReadOnly=False, User="", Group="", Tenant=""),
    FlexVolume=Struct(Driver="", FSType="", SecretRef=_REFERENCE, ReadOnly=False, Options=None),
    Cinder=Struct(VolumeID="", FSType="", ReadOnly=False, SecretRef=_REFERENCE),
    CephFS=Struct(Monitors=None, Path="", User="", SecretFile="", SecretRef=_REFERENCE, ReadOnly=False),
    Flocker=Struct(DatasetName="", DatasetUUID=""),
    DownwardAPI=Struct(Items=_DOWNWARD_ITEMS, DefaultMode=None),
    FC=Struct(TargetWWNs=None, Lun=None, FSType="", ReadOnly=False, WWIDs=None),
    AzureFile=Struct(SecretName="", ShareName="", ReadOnly=False),
    ConfigMap=Struct(Name="", Items=_ITEMS, DefaultMode=None, Optional=None),
    VsphereVolume=Struct(VolumePath="", FSType="", StoragePolicyName="", StoragePolicyID=""),
    AzureDisk=Struct(DiskName="", DataDiskURI="", CachingMode=None, FSType=None, ReadOnly=None, Kind=None),
    PhotonPersistentDisk=Struct(PdID="", FSType=""),
    Projected=Struct(Sources=_PROJECTION, DefaultMode=None),
    PortworxVolume=Struct(VolumeID="", FSType="", ReadOnly=False),
    ScaleIO=Struct(
        Gateway="",
        System="",
        SecretRef=_REFERENCE,
        SSLEnabled=False,
        ProtectionDomain="",
        StoragePool="",
        StorageMode="",
        VolumeName="",
        FSType="",
        ReadOnly=False,
    ),
    StorageOS=Struct(VolumeName="", VolumeNamespace="", FSType="", ReadOnly=False, SecretRef=_REFERENCE),
    CSI=Struct(Driver="", ReadOnly=None, FSType=None, VolumeAttributes=None, NodePublishSecretRef=_REFERENCE),
    Ephemeral=Struct(VolumeClaimTemplate=Template(Spec=CLAIM_SPEC)),
    Image=Struct(Reference="", PullPolicy=""),
)

# ----------------------------------------------------------------------------------------------- pods


class _PodSpec(Held):
    def shown(self, value: Any) -> Any:
        """Return a spec as errors show it: there is always a security context."""
        spec: Tree = value or {}
        moved = {key: spec[key] for key in _OF_SPEC if key in spec}
        account = spec.get("serviceAccountName") or spec.get("serviceAccount")
        return super().shown({**spec, "serviceAccountName": account, "securityContext": {**(spec.get("securityContext") or {}), **moved}})


_SPEC_FIELDS: Final = {
    "Volumes": _VOLUME,
    "InitContainers": Struct(**_CONTAINER),
    "Containers": Struct(**_CONTAINER),
    "EphemeralContainers": EPHEMERAL_CONTAINER,
    "RestartPolicy": "",
    "TerminationGracePeriodSeconds": None,
    "ActiveDeadlineSeconds": None,
    "DNSPolicy": "",
    "NodeSelector": None,
    "ServiceAccountName": "",
    "AutomountServiceAccountToken": None,
    "NodeName": "",
    "SecurityContext": _POD_SECURITY_CONTEXT,
    "ImagePullSecrets": _REFERENCE,
    "Hostname": "",
    "Subdomain": "",
    "SetHostnameAsFQDN": None,
    "Affinity": _AFFINITY,
    "SchedulerName": "",
    "Tolerations": Struct(Key="", Operator="", Value="", Effect="", TolerationSeconds=None),
    "HostAliases": Struct(IP="", Hostnames=None),
    "PriorityClassName": "",
    "Priority": None,
    "PreemptionPolicy": None,
    "DNSConfig": Struct(Nameservers=None, Searches=None, Options=Struct(Name="", Value=None)),
    "ReadinessGates": Struct(ConditionType=""),
    "RuntimeClassName": None,
    "Overhead": None,
    "EnableServiceLinks": None,
    "TopologySpreadConstraints": _SPREAD,
    "OS": _REFERENCE,
    "SchedulingGates": _REFERENCE,
    "ResourceClaims": RESOURCE_CLAIM,
    "Resources": Struct(**_RESOURCES),
    "HostnameOverride": None,
    "SchedulingGroup": Struct(PodGroupName=None),
}
POD_SPEC: Final = _PodSpec(**_SPEC_FIELDS)
POD_TEMPLATE: Final = Template(Spec=POD_SPEC)
