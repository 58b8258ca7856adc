"""Kueue: the kinds as they are served. Their models are in one module or package for each version, and the conversion between them in `conversion`."""

from kubemini.api.owned import AGE, OwnedKind, OwnedVersion, PrinterColumn

GROUP = "kueue.x-k8s.io"
DEPRECATION = "This version is deprecated. Use v1beta2 instead."

_AGE = PrinterColumn(AGE.name, AGE.json_path, AGE.type, description="Time since creation")


def _kind(
    kind: str,
    plural: str,
    *short_names: str,
    namespaced: bool = False,
    status: bool = True,
    columns: tuple[PrinterColumn, ...] = (),
    old_columns: tuple[PrinterColumn, ...] | None = None,
    selectable_fields: tuple[str, ...] = (),
    deprecation: str = DEPRECATION,
) -> OwnedKind:
    """Return a kind in both versions; v1beta1 has the same columns unless `old_columns` are given."""
    new = OwnedVersion("v1beta2", f"kubemini.api.kueue.v1beta2:{kind}", columns, status, selectable_fields=selectable_fields)
    old = OwnedVersion(
        "v1beta1", f"kubemini.api.kueue.v1beta1:{kind}", columns if old_columns is None else old_columns, status, deprecation=deprecation
    )
    return OwnedKind(GROUP, kind, plural, (new, old), namespaced, short_names)


def _cluster_queue_columns(cohort: str) -> tuple[PrinterColumn, ...]:
    return (
        PrinterColumn("Cohort", cohort, description="Cohort in which unused quota is shared"),
        PrinterColumn("Strategy", ".spec.queueingStrategy", description="Whether the head of the queue blocks the others", priority=1),
        PrinterColumn("Pending Workloads", ".status.pendingWorkloads", "integer", "Workloads that wait"),
        PrinterColumn("Admitted Workloads", ".status.admittedWorkloads", "integer", "Workloads that are admitted and not finished", 1),
    )


KINDS = (
    _kind("ResourceFlavor", "resourceflavors", "flavor", "flavors", "rf", status=False),
    _kind(
        "ClusterQueue",
        "clusterqueues",
        "cq",
        columns=_cluster_queue_columns(".spec.cohortName"),
        old_columns=_cluster_queue_columns(".spec.cohort"),
    ),
    _kind("Cohort", "cohorts", "co"),
    _kind(
        "LocalQueue",
        "localqueues",
        "queue",
        "queues",
        "lq",
        namespaced=True,
        columns=(
            PrinterColumn("ClusterQueue", ".spec.clusterQueue", description="ClusterQueue that backs it"),
            PrinterColumn("Pending Workloads", ".status.pendingWorkloads", "integer", "Workloads that wait"),
            PrinterColumn("Admitted Workloads", ".status.admittedWorkloads", "integer", "Workloads that are admitted and not finished"),
        ),
    ),
    _kind(
        "Workload",
        "workloads",
        "kwl",
        "kueueworkload",
        "kueueworkloads",
        namespaced=True,
        columns=(
            PrinterColumn("Queue", ".spec.queueName", description="LocalQueue to which it is submitted"),
            PrinterColumn("Reserved in", ".status.admission.clusterQueue", description="ClusterQueue in which it has reserved quota"),
            PrinterColumn("Admitted", ".status.conditions[?(@.type=='Admitted')].status", description="Whether it is admitted"),
            PrinterColumn("Finished", ".status.conditions[?(@.type=='Finished')].status", description="Whether it has finished"),
            _AGE,
        ),
        selectable_fields=(".status.admission.clusterQueue",),
    ),
    _kind(
        "WorkloadPriorityClass",
        "workloadpriorityclasses",
        "wpc",
        status=False,
        columns=(PrinterColumn("Value", ".value", "integer", "Priority of the class"),),
    ),
    _kind("AdmissionCheck", "admissionchecks", "ac"),
    _kind("Topology", "topologies", "topo", status=False),
    _kind("ProvisioningRequestConfig", "provisioningrequestconfigs", "prc", status=False),
    _kind("MultiKueueConfig", "multikueueconfigs", "mkconf", status=False, deprecation=""),
    _kind(
        "MultiKueueCluster",
        "multikueueclusters",
        "mkc",
        columns=(
            PrinterColumn("Connected", ".status.conditions[?(@.type=='Active')].status", description="Whether the cluster is connected"),
            _AGE,
        ),
    ),
)
