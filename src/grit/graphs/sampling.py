"""Which graphs make up which batch."""

import torch
from torch import Tensor


def shuffled_batches(num_graphs: int, batch_size: int, seed: int, epoch: int) -> list[Tensor]:
    """Indices of the graphs in each batch of an epoch: every graph once, the last batch as short as it must be.

    The order depends on seed and epoch alone, so that any epoch can be taken up again at any batch.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    return list(torch.split(torch.randperm(num_graphs, generator=generator), batch_size))
