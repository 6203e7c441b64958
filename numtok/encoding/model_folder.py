"""Where a pretrained model lies, in the layout of transformers: a folder, or a hub id.

``hf:PATH_OR_ID`` means the folder where there is one of that name, else the model of that id on the
hub: first what huggingface_hub keeps of it on this machine, then the network. Only files are read
or fetched by their names; nothing that a folder holds is ever run.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from numtok.errors import UsageError

PREFIX = "hf:"
TOKENIZER = "tokenizer.json"
_PATIENCE = 5.0  # seconds for the hub to answer at all


def model_folder(source: str, wanted: Sequence[str], needed: Sequence[str]) -> Path:
    """The folder of a model. Of one of the hub files are fetched whose names match ``wanted``
    (patterns), unless some for each of ``needed`` are in the cache.

    Raises UsageError for one that is neither here nor to be had.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise UsageError(
            f"{PREFIX}{source} is a file; give the folder of a model, with its config.json in it"
        )
    return _from_hub(source, [*wanted], needed)


def _from_hub(source: str, wanted: list[str], needed: Sequence[str]) -> Path:
    # Late: it takes a while, and most models are folders.
    from huggingface_hub import constants, get_session, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(source)
    except HFValidationError:
        raise UsageError(
            f"{PREFIX}{source}: there is no such folder, and it is no id of the hub (OWNER/NAME); "
            "check the path"
        ) from None
    with _silent("huggingface_hub"):
        kept: Path | None = None
        try:
            kept = Path(snapshot_download(source, allow_patterns=wanted, local_files_only=True))
            if all(any(kept.glob(pattern)) for pattern in needed):
                return kept
        except LocalEntryNotFoundError:
            pass
        try:
            # Asked once, since a download asks again and again for half a minute.
            get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
            return Path(snapshot_download(source, allow_patterns=wanted))
        except (HfHubHTTPError, LocalEntryNotFoundError) as error:
            why = str(error).strip().partition("\n")[0]
        except Exception as error:  # whatever a network raises that is not there
            why = f"no network: {error}"
    if kept is not None:  # what it lacks is said by who needs it
        return kept
    raise UsageError(
        f"{PREFIX}{source}: there is no such folder, and the hub's model of that id is neither in "
        f"the cache nor to be had ({why}); where there is a network, `hf download {source}` "
        "fetches it, and its folder can be given"
    )


@contextmanager
def _silent(library: str) -> Iterator[None]:
    """What a library logs is kept to itself: what counts is raised."""
    logger = logging.getLogger(library)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
