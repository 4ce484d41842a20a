import pytest
import torch

from grit.models.blocks import count_at, max_at, mean_at, min_at, sum_at

MESSAGES = torch.tensor([[1.0, -1.0], [3.0, -5.0], [-2.0, 4.0], [7.0, 0.5]], dtype=torch.float64)
TARGET = torch.tensor([2, 2, 0, 2])  # nothing arrives at node 1


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (sum_at, [[-2, 4], [0, 0], [11, -5.5]]),
        (mean_at, [[-2, 4], [0, 0], [11 / 3, -5.5 / 3]]),
        (max_at, [[-2, 4], [0, 0], [7, 0.5]]),
        (min_at, [[-2, 4], [0, 0], [1, -5]]),
    ],
)
def test_messages_by_hand(at, expected):
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(at(MESSAGES, TARGET, 3), expected)
    twice = at(MESSAGES.unsqueeze(1).expand(-1, 2, -1), TARGET, 3)  # of several heads
    torch.testing.assert_close(twice, expected.unsqueeze(1).expand(-1, 2, -1))


def test_counts_have_the_type_that_is_asked_for():
    assert torch.equal(count_at(TARGET, 3, torch.float32), torch.tensor([1.0, 0.0, 3.0]))
