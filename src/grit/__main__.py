"""``grit`` and ``python -m grit``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C before it is loaded ends like any other."""
    try:
        from grit.cli import main as run
    except KeyboardInterrupt:
        sys.exit("interrupted")
    run()


if __name__ == "__main__":
    main()
