"""GIN in plain loops, and what sums can do that means cannot."""

import torch

from grit.models import Gin
from tests.models.by_hand import SCHEMA, batch_of, embed, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS
from tests.models.message_passing.test_gcn import neighbours


@torch.no_grad()
def test_gin():
    model = with_own_norms(Gin(SCHEMA, num_layers=2, hidden_dim=12))
    for layer, epsilon in zip(model.layers, (0.3, -0.2), strict=True):
        layer.conv.eps.fill_(epsilon)
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x = embed(model.node, graph.x)
        (first,) = model.outputs[0].head.linears
        wanted = first(x.sum(0))
        for layer, output in zip(model.layers, model.outputs[1:], strict=True):
            inner, inner_norm, _, outer = layer.conv.nn
            heard = torch.stack([x[js].sum(0) for js in neighbours(graph)]) + (1 + layer.conv.eps) * x
            hidden = norm(inner_norm, inner(heard)).clamp(min=0)
            x = x + norm(layer.norm, outer(hidden)).clamp(min=0)
            wanted = wanted + output.head.linears[0](x.sum(0))
        torch.testing.assert_close(found[number], wanted)
