"""model_folder: locates a pretrained model in the format of the transformers library.

``hf:PATH_OR_ID`` refers to a local folder if one exists at this path. Otherwise it is the id of a
model on the hub, which is read from the cache of huggingface_hub or downloaded. Only the requested
files are read or downloaded; code in a folder is never executed.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from numtok.errors import UsageError

PREFIX = "hf:"
TOKENIZER = "tokenizer.json"
_PATIENCE = 5.0  # seconds to wait for a response of the hub


def model_folder(source: str, wanted: Sequence[str], needed: Sequence[str]) -> Path:
    """Return the folder of a pretrained model. A model on the hub is downloaded if necessary.

    source
        Path of a folder, or a hub id.
    wanted
        Patterns for the names of the files to download.
    needed
        Patterns for the names of the required files. If any of them is missing from the local
        cache, the model is downloaded. If the download fails, the incomplete cached folder is
        returned. Local folders are not checked.

    Raises UsageError if ``source`` is a file or not a valid hub id, or if the model is not cached
    and cannot be downloaded.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise UsageError(
            f"{PREFIX}{source} is a file. Use the folder of the model, which contains config.json"
        )
    return _from_hub(source, [*wanted], needed)


def _from_hub(source: str, wanted: list[str], needed: Sequence[str]) -> Path:
    # Imported late: it is slow, and most models are folders.
    from huggingface_hub import constants, get_session, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(source)
    except HFValidationError:
        raise UsageError(
            f"{PREFIX}{source}: folder not found, and not a hub id (OWNER/NAME). Check the path"
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
            # Checked once, since a download retries for half a minute.
            get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
            return Path(snapshot_download(source, allow_patterns=wanted))
        except (HfHubHTTPError, LocalEntryNotFoundError) as error:
            why = str(error).strip().partition("\n")[0]
        except Exception as error:  # a missing network raises many kinds of errors
            why = f"no network: {error}"
    if kept is not None:  # callers report missing files
        return kept
    raise UsageError(
        f"{PREFIX}{source}: folder not found, and the hub model is not cached and cannot be "
        f"downloaded ({why}). On a machine with network access: hf download {source}"
    )


@contextmanager
def _silent(library: str) -> Iterator[None]:
    """Suppress the log messages of a library; errors are raised anyway."""
    logger = logging.getLogger(library)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
