"""``numtok doctor``: check the installation, the working folder and the store."""

import typer

from numtok.cli._shared import OneJsonOption
from numtok.cli.output.printing import one_line, print_json


def command(context: typer.Context, json: OneJsonOption = False) -> None:
    """Check the installation, and say what to do.

    Checks packages, optional parts, compiled kernels, devices, numtok.toml, plugins and the store.
    Kernels that are not compiled yet are compiled. Exits with code 1 if a check fails.

    Example: numtok doctor
    """
    import msgspec

    from numtok.cli._config_file import problem_in_file
    from numtok.errors import NegativeVerdict
    from numtok.stages.doctor import run

    checks = run(context.obj.store, problem_in_file(context))
    if json:
        print_json({"checks": msgspec.to_builtins(checks)})
    else:
        widest = max(len(check.name) for check in checks)
        for check in checks:
            remedy = f". To do: {check.remedy}" if check.remedy else ""
            print(one_line(f"{check.status:7}  {check.name:{widest}}  {check.finding}{remedy}"))
    if failed := [check.name for check in checks if check.status == "failed"]:
        raise NegativeVerdict(f"failed: {', '.join(failed)}")
