"""Random histories of two sites on three real NATS servers; failures name seeds."""

from pathlib import Path

import pytest

from pubsub.cluster import started
from pubsub.random_cluster_history import play


@pytest.mark.slow
@pytest.mark.timeout(0)  # a busy machine is no fault
@pytest.mark.parametrize("block", range(5))
def test_histories_on_three_servers(nats_program: str, tmp_path: Path, block: int) -> None:
    with started(nats_program, tmp_path) as servers:
        for seed in range(10 * block, 10 * (block + 1)):
            play(seed, tmp_path, servers)
