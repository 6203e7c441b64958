"""``numtok verify``: check the files of artifacts against their digests."""

from typing import Annotated

import typer

from numtok.cli._shared import OneJsonOption, open_store
from numtok.cli.output.printing import Size, one_line, print_json
from numtok.names import counted


def command(
    context: typer.Context,
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="Artifact to check (default all)")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Number of random files to read per artifact (default all)"
        ),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Decode encoded data too, and report rows that do not match their tokens"
        ),
    ] = False,
    json: OneJsonOption = False,
) -> None:
    """Check that artifacts are not damaged.

    Reads all files, or a random sample of them with --sample, and compares their digests with those
    recorded when the artifact was written. With --deep, also decodes all encoded data.

    Example: numtok verify era5-p1000
    """
    from numtok.encoding.decoded_shards import differences
    from numtok.errors import NegativeVerdict
    from numtok.store.artifact import ENCODED
    from numtok.store.verification import verify

    store = open_store(context)
    artifacts = store.artifacts() if ref is None else [store.resolve(ref)]
    listed, files, size, problems = 0, 0, 0, []
    for artifact in artifacts:
        check = verify(artifact, sample)
        if deep and artifact.kind == ENCODED:
            check.problems += differences(artifact)
        listed += check.listed
        files, size = files + check.files, size + check.bytes
        problems += [{"ref": artifact.ref, "problem": text} for text in check.problems]
    if json:
        counts = {"artifacts": len(artifacts), "files": files, "bytes": size}
        print_json(counts | {"problems": problems})
    else:
        for found in problems:
            print(one_line(f"{found['ref']}: {found['problem']}"))
        what = f"{counted(len(artifacts), 'artifact')}, {counted(files, 'file')}"
        if sample is not None:
            what += f" of {listed:,}"
        print(f"checked {what}, {Size(size)}")
    if problems:
        where = counted(len({found["ref"] for found in problems}), "artifact")
        raise NegativeVerdict(
            f"{counted(len(problems), 'problem')} in {where}. Remove damaged artifacts with "
            "`numtok rm --force REF` and rebuild them with the command of `numtok show REF`"
        )
