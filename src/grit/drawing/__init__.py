"""Pictures of graphs and molecules, with numbers over their nodes and node pairs."""
