"""Models whose nodes attend to all nodes of their graph."""
