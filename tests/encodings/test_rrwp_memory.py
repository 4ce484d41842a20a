"""What RRWP and its pairs take of memory, measured in a process of its own, because a peak does not go down again."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc to measure a peak")

SCRIPT = """
import sys, torch
import grit
from grit import memory
from torch_geometric.data import Data

memory.available_memory = lambda device: 8 * 2**30
large = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=10_000)
sparse = Data(edge_index=torch.randint(20_000, (2, 20_000)), num_nodes=20_000)
spokes = torch.stack([torch.zeros(20_000).long(), torch.arange(20_000)])
star = Data(edge_index=torch.cat([spokes, spokes.flip(0)], 1), num_nodes=20_000)
before = memory.proc_bytes("/proc/self/status", "VmHWM")
for statement in sys.argv[1:]:
    try:
        eval(statement)
    except grit.GritError as error:
        print(error)
    else:
        print("done")
print((memory.proc_bytes("/proc/self/status", "VmHWM") - before) >> 20)
"""


def run(*statements):
    """The error, or "done", of each statement, and by how many MiB all of them raised the peak."""
    command = [sys.executable, "-c", SCRIPT, *statements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *messages, peak = done.stdout.splitlines()
    return messages, int(peak)


def test_sparse_pairs_of_a_large_graph_need_no_square_matrix():
    messages, peak = run("grit.PairBatch.from_data_list([sparse], walk_steps=3, pairs='edges')")
    assert messages == ["done"]
    assert peak < 300  # the square would take 1,526


def test_what_does_not_fit_is_refused_before_it_is_made():
    all_pairs = "the encoded list of all pairs needs at least 10.8 GiB for 100,000,000 node pairs, and 8.0 GiB are free"
    wanted = {
        "grit.PairBatch.from_data_list([large], walk_steps=21)": all_pairs,
        "grit.PairBatch.from_data_list([large], walk_steps=21, encoding='spd')": all_pairs,
        "grit.rrwp(large.edge_index, 10_000, 21)": all_pairs,
        "grit.AddRRWP(21)(large)": all_pairs,
        "grit.PairBatch.from_data_list([star], walk_steps=2, pairs='khop-2')": "the list of pairs needs at least 17.9",
    }
    messages, peak = run(*wanted)
    for message, beginning in zip(messages, wanted.values(), strict=True):
        assert message.startswith(beginning)
        assert "sparse attention (model.pairs=edges" in message
    assert peak < 100  # the list alone would take 1,526
