"""Graphs: packed, as node pairs that attention runs over, and in stores on disk.

Orientation, stated once for the whole project. A pair is (query ``i``, key ``j``): node ``i`` attends to node ``j``.

- The pair encoding at ``(i, j)`` is that of the walk from ``i`` to ``j``: ``M^k[i, j]``.
- The edge feature at ``(i, j)`` is that of the observed edge ``j -> i``, as the released code has it. On undirected
  graphs with symmetric features this is the paper's ``e'_ij``.
- Degree is out-degree: the number of listed edges that leave a node.
"""
