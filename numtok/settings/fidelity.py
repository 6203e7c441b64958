"""Settings of ``numtok fidelity``, which counts the printed results that measurements reproduce."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok fidelity``."""

    folder: str = setting(
        "docs/results",
        "Folder with papers/PAPER.csv (measurements) and claims.toml",
        argument=True,
        swept=False,
    )
