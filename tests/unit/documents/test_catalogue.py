"""The accelerator catalogue: relative speeds that one number could not tell."""

import pytest

from evenflow.core.fleet.catalogue import MODELS, REFERENCE_MODEL, memory_bytes_of, relative_speed_ppm
from evenflow.events.documents.fields import read_id

#: Ratios to the reference worked out by hand from published peaks: compute, bandwidth, in thousandths.
WORKED = {
    "a100-80g": (1_000, 1_000),
    "h100-80g": (3_171, 1_643),
    "h20": (474, 1_962),
    "ascend-910b3": (1_003, 785),
    "ascend-910c": (2_410, 1_569),
    "mi300x": (4_190, 2_599),
    "dcu-k100-ai": (628, 439),
    "mlu370-x8": (308, 301),
    "mtt-s4000": (321, 377),
}


@pytest.mark.parametrize("model", sorted(WORKED))
def test_relative_speeds_agree_with_the_worked_table(model):
    """Independent figures, to a thousandth."""
    compute, bandwidth = WORKED[model]
    assert abs(relative_speed_ppm(model, "compute") - compute * 1_000) <= 500
    assert abs(relative_speed_ppm(model, "bandwidth") - bandwidth * 1_000) <= 500


def test_one_device_ranks_below_the_reference_for_compute_and_above_it_for_bandwidth():
    """No single number could rank the H20."""
    one = relative_speed_ppm(REFERENCE_MODEL, "compute")
    assert relative_speed_ppm("h20", "compute") < one < relative_speed_ppm("h20", "bandwidth")
    assert relative_speed_ppm("h20", "balanced") == relative_speed_ppm("h20", "compute")


@pytest.mark.parametrize("model", ["g2", "g3", "unheard-of", ""])
def test_an_unknown_model_counts_one_and_has_no_known_memory(model):
    """Generic models of recorded fleets are such."""
    for workload in ("compute", "bandwidth", "balanced"):
        assert relative_speed_ppm(model, workload) == 1_000_000
    assert memory_bytes_of(model) is None


def test_every_row_is_usable():
    """Ids follow the grammar that documents use; no row is given twice; figures are above zero."""
    for model in MODELS.values():
        assert read_id(model.id) == model.id
        assert min(model.memory_bytes, model.compute_gflops, model.bandwidth_mb_s) > 0
        assert set(model.precisions) <= {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"}
    assert len(MODELS) == 66
