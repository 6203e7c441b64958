"""The half of a resolved training run that texts and tables share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numtok.settings.train import Config
from numtok.store.artifact import Artifact
from numtok.training.trainer import Execution


@dataclass(frozen=True, kw_only=True)
class ResolvedTraining(ABC):
    """A training run with every part built, checked before anything starts.

    config
        The options with all defaults filled in: they go into the manifest and the recorded command.
    devices
        Number of processes that this one starts or shares its work with.
    """

    kind: ClassVar[str]  #: ``texts`` or ``tables``
    files: ClassVar[tuple[str, ...]]  #: of the model

    config: Config
    data: Artifact
    execution: Execution
    devices: int

    @property
    @abstractmethod
    def default_name(self) -> str:
        """Name of the model if ``--name`` is not given."""

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Settings that the version depends on."""

    @property
    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """The settings in readable form, without the seed: seeds of one experiment share it."""

    @property
    @abstractmethod
    def less_memory(self) -> str:
        """Advice when memory runs out: the options in use, and those that need less."""

    @property
    def parents(self) -> list[Artifact]:
        """The artifacts that the model is made from."""
        return [self.data]
