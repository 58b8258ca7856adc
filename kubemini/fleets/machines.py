"""Machine types of GKE, EKS and AKS that carry accelerators: what such a node reports and how its provider labels it.

Figures are the providers' published vCPU, memory and device counts, with memory taken as GiB. What a node keeps for the system
follows each provider's formula, so that a pod which asks for all 208 vCPU of an H100 node does not fit here either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Provider = Literal["gke", "eks", "aks"]

POOL_LABELS: dict[Provider, tuple[str, ...]] = {
    "gke": ("cloud.google.com/gke-nodepool",),
    "eks": ("eks.amazonaws.com/nodegroup",),
    "aks": ("kubernetes.azure.com/agentpool", "agentpool"),
}
"""Labels whose value is the name of the node pool."""

_PLACE: dict[Provider, dict[str, str]] = {
    "gke": {"topology.kubernetes.io/region": "us-central1", "topology.kubernetes.io/zone": "us-central1-a"},
    "eks": {"topology.kubernetes.io/region": "us-east-1", "topology.kubernetes.io/zone": "us-east-1a", "topology.k8s.aws/zone-id": "use1-az1"},
    "aks": {"topology.kubernetes.io/region": "eastus", "topology.kubernetes.io/zone": "eastus-1"},
}


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model as NVIDIA's feature discovery labels it; `memory` is in MiB, 0 where it is not published."""

    product: str
    memory: int
    family: str
    compute: str


GPUS = {
    "A100 40G": Gpu("NVIDIA-A100-SXM4-40GB", 40_960, "ampere", "8.0"),
    "A100 80G": Gpu("NVIDIA-A100-SXM4-80GB", 81_920, "ampere", "8.0"),
    "H100": Gpu("NVIDIA-H100-80GB-HBM3", 81_559, "hopper", "9.0"),
    "H200": Gpu("NVIDIA-H200", 143_771, "hopper", "9.0"),
    "B200": Gpu("NVIDIA-B200", 183_359, "blackwell", "10.0"),
    "GB200": Gpu("NVIDIA-GB200", 189_471, "blackwell", "10.0"),
    "GB300": Gpu("NVIDIA-GB300", 0, "blackwell", "10.3"),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type: `memory` in GiB, `devices` as extended resources, `accelerator` in words (``8 × H100``)."""

    name: str
    provider: Provider
    cpu: int
    memory: int
    accelerator: str
    devices: dict[str, int]
    labels: dict[str, str]
    taints: tuple[dict[str, str], ...] = ()
    arch: str = "amd64"
    pods: int = 110
    chips: int = 0
    """TPU chips, 0 on other machines."""
    topologies: tuple[str, ...] = ()
    """Shapes of TPU slices that are listed for this machine."""
    cube_limit: int = field(default=0)
    """For TPUs in a 3D torus: how many chips a slice may have; shapes of whole 4x4x4 cubes need not be listed."""

    @property
    def allocatable_cpu(self) -> int:
        """Millicores that pods can use."""
        return self.cpu * 1000 - _RESERVED_CPU[self.provider](self.cpu)

    @property
    def allocatable_memory(self) -> int:
        """MiB that pods can use."""
        return self.memory * 1024 - _RESERVED_MEMORY[self.provider](self.memory * 1024, self.pods)


# ----------------------------------------------------------------------------------------------- what the system keeps


def _stepwise(amount: int, steps: tuple[tuple[int, int], ...], rest: int) -> int:
    # each step is (size, share in 1/10,000 of that part)
    kept = 0
    for size, share in steps:
        part = min(amount, size)
        kept += part * share
        amount -= part
    return (kept + amount * rest) // 10_000


def _gke_cpu(cores: int) -> int:
    return _stepwise(cores * 1000, ((1000, 600), (1000, 100), (2000, 50)), 25)


def _gke_memory(mebibytes: int, _: int) -> int:
    return _stepwise(mebibytes, ((4096, 2500), (4096, 2000), (8192, 1000), (114_688, 600)), 200) + 100


def _eks_memory(_: int, pods: int) -> int:
    return 11 * pods + 255 + 100


def _aks_cpu(cores: int) -> int:
    return _stepwise(cores * 1000, ((1000, 600), (1000, 400), (2000, 200)), 100)


def _aks_memory(mebibytes: int, pods: int) -> int:
    return min(20 * pods + 50, mebibytes // 4) + 100


_RESERVED_CPU: dict[Provider, Callable[[int], int]] = {"gke": _gke_cpu, "eks": _gke_cpu, "aks": _aks_cpu}
_RESERVED_MEMORY: dict[Provider, Callable[[int, int], int]] = {"gke": _gke_memory, "eks": _eks_memory, "aks": _aks_memory}

# ----------------------------------------------------------------------------------------------- the tables


def _taint(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value, "effect": "NoSchedule"}


def _gpu_labels(model: str, count: int) -> dict[str, str]:
    gpu = GPUS[model]
    major, minor = gpu.compute.split(".")
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": gpu.product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.family": gpu.family,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
    }
    if gpu.memory:
        labels["nvidia.com/gpu.memory"] = str(gpu.memory)
    return labels


def _gke_gpu(name: str, count: int, model: str, label: str, cpu: int, memory: int, arch: str = "amd64") -> Machine:
    labels = {
        **_PLACE["gke"],
        "cloud.google.com/machine-family": name.partition("-")[0],
        "cloud.google.com/gke-accelerator": label,
        "cloud.google.com/gke-accelerator-count": str(count),
        "cloud.google.com/gke-gpu-driver-version": "latest",
        **_gpu_labels(model, count),
    }
    taints = (_taint("nvidia.com/gpu", "present"), *((_taint("kubernetes.io/arch", "arm64"),) if arch == "arm64" else ()))
    return Machine(name, "gke", cpu, memory, f"{count} × {model}", {"nvidia.com/gpu": count}, labels, taints, arch)


def _gke_tpu(name: str, chips: int, generation: str, label: str, cpu: int, memory: int, topologies: str, cube_limit: int = 0) -> Machine:
    labels = {
        **_PLACE["gke"],
        "cloud.google.com/machine-family": name.partition("-")[0],
        "cloud.google.com/gke-tpu-accelerator": label,
        "cloud.google.com/gke-accelerator-count": str(chips),
    }
    taints = (_taint("google.com/tpu", "present"),)
    shapes = tuple(topologies.split())
    devices = {"google.com/tpu": chips}
    return Machine(name, "gke", cpu, memory, f"{chips} × TPU {generation}", devices, labels, taints, "amd64", 110, chips, shapes, cube_limit)


def _eks(name: str, count: int, model: str, cpu: int, memory: int, efa: int, arch: str = "amd64") -> Machine:
    nvidia = model in GPUS
    devices = {"nvidia.com/gpu" if nvidia else "aws.amazon.com/neuron": count, "vpc.amazonaws.com/efa": efa}
    labels = {**_PLACE["eks"], "eks.amazonaws.com/capacityType": "ON_DEMAND", **(_gpu_labels(model, count) if nvidia else {})}
    return Machine(name, "eks", cpu, memory, f"{count} × {model}", devices, labels, (), arch, 250)


def _aks(name: str, count: int, model: str, cpu: int, memory: int, arch: str = "amd64") -> Machine:
    labels = {**_PLACE["aks"], "kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia", **_gpu_labels(model, count)}
    return Machine(name, "aks", cpu, memory, f"{count} × {model}", {"nvidia.com/gpu": count}, labels, (), arch)


_FLAT = "2x2 2x4 4x4 4x8 8x8 8x16 16x16"
_TORUS = "2x2x1 2x2x2 2x2x4 2x4x4"

MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        _gke_gpu("a2-highgpu-8g", 8, "A100 40G", "nvidia-tesla-a100", 96, 680),
        _gke_gpu("a2-megagpu-16g", 16, "A100 40G", "nvidia-tesla-a100", 96, 1360),
        _gke_gpu("a2-ultragpu-8g", 8, "A100 80G", "nvidia-a100-80gb", 96, 1360),
        _gke_gpu("a3-highgpu-8g", 8, "H100", "nvidia-h100-80gb", 208, 1872),
        _gke_gpu("a3-megagpu-8g", 8, "H100", "nvidia-h100-mega-80gb", 208, 1872),
        _gke_gpu("a3-ultragpu-8g", 8, "H200", "nvidia-h200-141gb", 224, 2952),
        _gke_gpu("a4-highgpu-8g", 8, "B200", "nvidia-b200", 224, 3968),
        _gke_gpu("a4x-highgpu-4g", 4, "GB200", "nvidia-gb200", 140, 884, "arm64"),
        _gke_gpu("a4x-maxgpu-4g-metal", 4, "GB300", "nvidia-gb300", 144, 960, "arm64"),
        _gke_tpu("ct3-hightpu-4t", 4, "v3", "tpu-v3-device", 96, 340, "2x2"),
        _gke_tpu("ct3p-hightpu-4t", 4, "v3", "tpu-v3-slice", 48, 340, "4x4 4x8 8x8 8x16 16x16 16x32 32x32"),
        _gke_tpu("ct4p-hightpu-4t", 4, "v4", "tpu-v4-podslice", 240, 407, _TORUS, 4096),
        _gke_tpu("ct5lp-hightpu-1t", 1, "v5e", "tpu-v5-lite-podslice", 24, 48, "1x1"),
        _gke_tpu("ct5lp-hightpu-4t", 4, "v5e", "tpu-v5-lite-podslice", 112, 192, _FLAT),
        _gke_tpu("ct5lp-hightpu-8t", 8, "v5e", "tpu-v5-lite-podslice", 224, 384, "2x4"),
        _gke_tpu("ct5p-hightpu-4t", 4, "v5p", "tpu-v5p-slice", 208, 448, _TORUS, 6144),
        _gke_tpu("ct6e-standard-1t", 1, "v6e", "tpu-v6e-slice", 44, 176, "1x1"),
        _gke_tpu("ct6e-standard-4t", 4, "v6e", "tpu-v6e-slice", 180, 720, _FLAT),
        _gke_tpu("ct6e-standard-8t", 8, "v6e", "tpu-v6e-slice", 180, 1440, "2x4"),
        _gke_tpu("tpu7x-standard-4t", 4, "7x", "tpu7x", 224, 960, _TORUS, 9216),
        _eks("p4d.24xlarge", 8, "A100 40G", 96, 1152, 4),
        _eks("p4de.24xlarge", 8, "A100 80G", 96, 1152, 4),
        _eks("p5.48xlarge", 8, "H100", 192, 2048, 32),
        _eks("p5e.48xlarge", 8, "H200", 192, 2048, 32),
        _eks("p5en.48xlarge", 8, "H200", 192, 2048, 16),
        _eks("p6-b200.48xlarge", 8, "B200", 192, 2048, 8),
        _eks("p6e-gb200.36xlarge", 4, "GB200", 144, 960, 17, "arm64"),
        _eks("trn1.32xlarge", 16, "Trainium", 128, 512, 8),
        _eks("trn2.48xlarge", 16, "Trainium2", 192, 2048, 16),
        _aks("Standard_ND96asr_v4", 8, "A100 40G", 96, 900),
        _aks("Standard_ND96amsr_A100_v4", 8, "A100 80G", 96, 1900),
        _aks("Standard_ND96isr_H100_v5", 8, "H100", 96, 1900),
        _aks("Standard_ND96isr_H200_v5", 8, "H200", 96, 1850),
        _aks("Standard_ND128isr_NDR_GB200_v6", 4, "GB200", 128, 900, "arm64"),
    )
}
"""Every known machine type by name."""


def hosts_of_slice(machine: Machine, topology: str) -> int:
    """Return how many machines make one TPU slice of a shape (``4x4``, ``2x2x4``). Raise ValueError where there is no such slice.

    >>> hosts_of_slice(MACHINES["ct5lp-hightpu-4t"], "4x4"), hosts_of_slice(MACHINES["ct5p-hightpu-4t"], "4x4x8")
    (4, 32)
    """
    if not machine.chips:
        raise ValueError(f"{machine.name} has no TPU chips, so it forms no slice; leave topology out")
    sides = [int(side) if side.isdecimal() else 0 for side in topology.split("x")]
    chips = 1
    for side in sides:
        chips *= side
    of_cubes = len(sides) == 3 and all(side and side % 4 == 0 for side in sides) and sides == sorted(sides) and chips <= machine.cube_limit
    if topology not in machine.topologies and not of_cubes:
        cubes = f", and AxBxC of multiples of 4 with A ≤ B ≤ C up to {machine.cube_limit} chips" if machine.cube_limit else ""
        raise ValueError(f"{machine.name} forms no slice of {topology}; it forms {', '.join(machine.topologies)}{cubes}")
    return chips // machine.chips
