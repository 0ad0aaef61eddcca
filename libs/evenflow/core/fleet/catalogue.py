"""The catalogue of accelerator models: memory, and relative speed per class of workload. A new model is one row.

Figures are published peaks, dense, at 16-bit precision, and memory bandwidth. Most are from Epoch AI, "Machine
Learning Hardware" (epoch.ai/data/machine-learning-hardware, CC BY 4.0), completed from vendors' tables; NOTICE carries
the credit. Memory is what the name promises in GiB, as drivers report it. A model that is not listed counts as fast as
the reference and has no known memory; a precision that is not listed is not known to be supported.

Relative speed follows the roofline: a compute-bound task runs with the ratio of the compute peaks, a bandwidth-bound
one with the ratio of the bandwidths, and a balanced task, which keeps both busy on the reference, with the smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evenflow.core.demand.task import Workload
from evenflow.core.units import divide_half_even

#: The model whose relative speed is 1 in every class.
REFERENCE_MODEL: Final = "a100-80g"
#: Relative speed 1, in parts per million.
SPEED_ONE_PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class AcceleratorModel:
    """One model. Peaks are dense 16-bit GFLOPS and MB/s; `precisions` are those known to be supported."""

    id: str
    vendor: str
    memory_bytes: int
    compute_gflops: int
    bandwidth_mb_s: int
    precisions: tuple[str, ...]


#: id, vendor, memory in GiB, dense 16-bit GFLOPS, memory bandwidth in MB/s, precisions known to be supported.
_ROWS: Final = (
    ("p100-16g", "NVIDIA", 16, 18_700, 732_000, "fp64 fp32 fp16"),
    ("v100-16g", "NVIDIA", 16, 125_000, 900_000, "fp64 fp32 fp16"),
    ("v100-32g", "NVIDIA", 32, 125_000, 900_000, "fp64 fp32 fp16"),
    ("v100-pcie-32g", "NVIDIA", 32, 112_000, 900_000, "fp64 fp32 fp16"),
    ("t4", "NVIDIA", 16, 65_000, 320_000, "fp64 fp32 fp16 int8"),
    ("a10", "NVIDIA", 24, 125_000, 600_000, "fp64 fp32 fp16 bf16 int8"),
    ("a30", "NVIDIA", 24, 165_000, 933_000, "fp64 fp32 fp16 bf16 int8"),
    ("a40", "NVIDIA", 48, 149_700, 696_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("a100-pcie-40g", "NVIDIA", 40, 312_000, 1_555_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("a100-40g", "NVIDIA", 40, 312_000, 1_555_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("a100-pcie-80g", "NVIDIA", 80, 312_000, 1_935_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("a100-80g", "NVIDIA", 80, 312_000, 2_039_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("a800-80g", "NVIDIA", 80, 312_000, 2_039_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("l4", "NVIDIA", 24, 121_000, 300_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("l20", "NVIDIA", 48, 119_500, 864_000, "fp64 fp32 tf32 fp16 bf16 int8"),
    ("l40", "NVIDIA", 48, 181_000, 864_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("l40s", "NVIDIA", 48, 362_000, 864_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("rtx-4090", "NVIDIA", 24, 165_000, 1_008_000, "fp64 fp32 fp16 bf16 int8"),
    ("h20", "NVIDIA", 96, 148_000, 4_000_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("h800-80g", "NVIDIA", 80, 989_500, 3_350_000, "fp16 bf16 fp8 int8"),
    ("h100-pcie-80g", "NVIDIA", 80, 756_000, 2_040_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("h100-80g", "NVIDIA", 80, 989_400, 3_350_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("h100-nvl-94g", "NVIDIA", 94, 835_500, 3_938_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("h200-141g", "NVIDIA", 141, 989_500, 4_800_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("b200-180g", "NVIDIA", 180, 2_250_000, 7_700_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("gb200", "NVIDIA", 186, 2_500_000, 8_000_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("b300", "NVIDIA", 270, 2_250_000, 7_700_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("gb300", "NVIDIA", 287, 2_500_000, 8_000_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("ascend-910a", "Huawei", 32, 256_000, 1_200_000, "fp16 int8"),
    ("ascend-910b1", "Huawei", 64, 400_000, 1_600_000, "fp16 bf16"),
    ("ascend-910b2", "Huawei", 64, 376_000, 1_600_000, "fp16 bf16"),
    ("ascend-910b3", "Huawei", 64, 313_000, 1_600_000, "fp16 bf16"),
    ("ascend-910b4", "Huawei", 32, 280_000, 800_000, "fp32 fp16 bf16"),
    ("ascend-910c", "Huawei", 128, 752_000, 3_200_000, "fp16 bf16 int8"),
    ("mlu370-s4", "Cambricon", 24, 72_000, 307_200, "fp32 fp16 int8"),
    ("mlu370-x4", "Cambricon", 24, 96_000, 307_200, "fp32 fp16 int8"),
    ("mlu370-x8", "Cambricon", 48, 96_000, 614_400, "fp32 fp16 int8"),
    ("dcu-k100-ai", "Hygon", 64, 196_000, 896_000, "fp64 fp32 tf32 fp16 int8"),
    ("dcu-bw200", "Hygon", 64, 480_000, 1_600_000, "fp64 fp32 tf32 fp16 int8"),
    ("mi210", "AMD", 64, 181_000, 1_640_000, "fp64 fp32 fp16 bf16 int8"),
    ("mi250", "AMD", 128, 362_100, 3_280_000, "fp64 fp32 fp16 bf16 int8"),
    ("mi250x", "AMD", 128, 383_000, 3_280_000, "fp64 fp32 fp16 bf16 int8"),
    ("mi300x", "AMD", 192, 1_307_400, 5_300_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("mi325x", "AMD", 256, 1_307_400, 6_000_000, "fp64 fp32 tf32 fp16 bf16 fp8 int8"),
    ("mi355x", "AMD", 288, 2_516_600, 8_000_000, "fp16 bf16 int8"),
    ("gaudi", "Intel", 32, 60_000, 900_000, "bf16"),
    ("gaudi2", "Intel", 96, 432_000, 2_460_000, "bf16 fp8"),
    ("gaudi3", "Intel", 128, 1_835_000, 3_670_000, "fp32 bf16 fp8"),
    ("kunlun-k200", "Kunlunxin", 16, 64_000, 512_000, "fp32 fp16 int8"),
    ("kunlun-r200", "Kunlunxin", 16, 128_000, 512_000, "fp32 fp16 int8"),
    ("kunlun-r200-8f", "Kunlunxin", 32, 128_000, 512_000, "fp32 fp16 int8"),
    ("kunlun-rg800", "Kunlunxin", 32, 128_000, 512_000, "fp32 fp16 int8"),
    ("mtt-s4000", "Moore Threads", 48, 100_000, 768_000, "fp32 tf32 fp16 int8"),
    ("metax-c500", "MetaX", 64, 240_000, 1_800_000, "fp32 tf32 fp16 int8"),
    ("bi-v100", "Iluvatar", 32, 128_000, 1_200_000, "fp32 fp16 int8"),
    ("br100", "Biren", 64, 1_024_000, 1_640_000, "fp32 tf32 fp16 int8"),
    ("tpu-v2", "Google", 16, 46_000, 600_000, "fp32 bf16"),
    ("tpu-v3", "Google", 32, 123_000, 900_000, "bf16"),
    ("tpu-v4", "Google", 32, 275_000, 1_200_000, "bf16 int8"),
    ("tpu-v5e", "Google", 16, 197_000, 819_000, "bf16 int8"),
    ("tpu-v5p", "Google", 95, 459_000, 2_765_000, "bf16 fp8 int8"),
    ("tpu-v6e", "Google", 32, 918_000, 1_638_000, "bf16 fp8 int8"),
    ("tpu-v7", "Google", 192, 2_307_000, 7_370_000, "bf16 fp8"),
    ("trainium1", "AWS", 32, 190_000, 820_000, "fp32 fp16 bf16 int8"),
    ("inferentia2", "AWS", 32, 190_000, 820_000, "fp32 fp16 bf16 fp8 int8"),
    ("trainium2", "AWS", 96, 667_000, 2_900_000, "fp16 bf16 fp8"),
)

MODELS: Final[dict[str, AcceleratorModel]] = {
    model: AcceleratorModel(model, vendor, memory * 2**30, compute, bandwidth, tuple(precisions.split()))
    for model, vendor, memory, compute, bandwidth, precisions in _ROWS
}


def relative_speed_ppm(model: str, workload: Workload) -> int:
    """Relative speed of a model for a class of workload, in ppm of the reference; unknown models count 1."""
    return _SPEEDS.get((model, workload), SPEED_ONE_PPM)


def memory_bytes_of(model: str) -> int | None:
    """Memory of one device of a model, or None when the catalogue does not know the model."""
    known = MODELS.get(model)
    return None if known is None else known.memory_bytes


def _speeds() -> dict[tuple[str, str], int]:
    reference = MODELS[REFERENCE_MODEL]
    speeds: dict[tuple[str, str], int] = {}
    for model in MODELS.values():
        compute = divide_half_even(model.compute_gflops * SPEED_ONE_PPM, reference.compute_gflops)
        bandwidth = divide_half_even(model.bandwidth_mb_s * SPEED_ONE_PPM, reference.bandwidth_mb_s)
        speeds[model.id, "compute"] = compute
        speeds[model.id, "bandwidth"] = bandwidth
        speeds[model.id, "balanced"] = min(compute, bandwidth)
    return speeds


_SPEEDS: Final = _speeds()
