from grit.training.demo import run_demo, triangle_graphs


def test_learns_something(capsys):
    error, constant = run_demo(steps=60, seed=0)
    assert error < 0.6 * constant
    printed = capsys.readouterr().out
    assert "Next:" in printed


def test_counts_triangles():
    import networkx as nx

    for data in triangle_graphs(5, seed=3):
        graph = nx.Graph(data.edge_index.t().tolist())
        assert round(10 * data.y.item()) == sum(nx.triangles(graph).values()) // 3
