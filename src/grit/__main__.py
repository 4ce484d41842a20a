"""``python -m grit``."""

from grit.cli import main

main()
