"""``grit doctor``."""


def doctor() -> None:
    """Say what this installation can do: versions, kernels, threads, data."""
    from grit.cli.print_doctor import print_report

    print_report()
