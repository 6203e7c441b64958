"""uci: the 25 UCI regression data sets in Table 3 of Decoding-based Regression, with ten folds."""

import gzip
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from numtok import files
from numtok.data.sources.base import Dataset, Origin, TableSource
from numtok.errors import DataError, StoreError, UsageError, unknown

_REPOSITORY = "https://raw.githubusercontent.com/treforevans/uci_datasets/master"
_DATA, _MASK = "data.csv.gz", "test_mask.csv.gz"
_FOLDS = 10
_MOST = 1 << 30  # bytes of one file
_WIDEST = 40  # generous maximum number of bytes of one number and its comma


class _Set(NamedTuple):
    """One data set: its name in the paper, its size, and notes for its users."""

    title: str
    rows: int
    features: int
    notes: tuple[str, ...] = ()


_ALL = (
    "UCI machine learning repository, prepared by Trefor Evans (uci_datasets, MIT licence); each "
    "set has terms of its own",
    "every column, including the target, is centered over all rows, including test rows, and "
    "rounded to about five digits: the original magnitudes are lost",
)
_LOG = "the target is a centered logarithm, judging by its values"
_LEAKS = (
    "the target leaks: its exponential is an exact linear function of the features, which include "
    "the casual and registered rentals that it is the sum of"
)
_NOISE = (
    "the target is uniform noise that cannot be predicted: with the target scaled to [0, 1], the "
    "best mean negative log-likelihood is 0"
)


def _atoms(count: int) -> str:
    return f"the target has only {count} distinct values: likelihoods of densities are degenerate"


_SETS = {
    "airfoil": _Set("Airfoil", 1503, 5),
    "autompg": _Set("AutoMPG", 392, 7),
    "autos": _Set("Autos", 159, 25, (_LOG,)),
    "bike": _Set("Bike", 17379, 17, (_LOG, _LEAKS)),
    "breastcancer": _Set("BreastCancer", 194, 33),
    "challenger": _Set(
        "Challenger", 23, 4, (_atoms(3), "a fold has two or three test rows: its errors are large")
    ),
    "concrete": _Set("Concrete", 1030, 8),
    "elevators": _Set("Elevators", 16599, 18, (_atoms(61),)),
    "energy": _Set("Energy", 768, 8),
    "fertility": _Set("Fertility", 100, 9),
    "gas": _Set("Gas", 2565, 128, (_atoms(35),)),
    "housing": _Set("Housing", 506, 13),
    "keggdirected": _Set("KeggDirected", 48827, 20),
    "kin40k": _Set("Kin 40K", 40000, 8),
    "parkinsons": _Set("Parkinsons", 5875, 20),
    "pol": _Set("Pol", 15000, 26, (_atoms(11),)),
    "protein": _Set("Protein", 45730, 9),
    "pumadyn32nm": _Set("Pumadyn32nm", 8192, 32),
    "slice": _Set("Slice", 53500, 385),
    "sml": _Set("SML", 4137, 26),
    "solar": _Set("Solar", 1066, 10, (_atoms(8),)),
    "stock": _Set("Stock", 536, 11),
    "tamielectric": _Set("TamiElectric", 45781, 3, (_NOISE,)),
    "wine": _Set("Wine", 1599, 11, ("the target is alcohol, not quality", _atoms(65))),
    "yacht": _Set("Yacht", 308, 6, (_LOG,)),
}


@dataclass(frozen=True)
class Uci(TableSource):
    """Regression data sets from github.com/treforevans/uci_datasets, with ten folds each.

    set
        ``all``, or names of data sets separated by commas. A name is that of the folder
        (``airfoil``) or the one in Table 3 of Decoding-based Regression (``Kin 40K``).
    from_
        Folder or URL that contains a copy of the repository.

    The folds are ``split_0`` to ``split_9``. Every row is a test row in exactly one of them. The
    features are named x1, x2, ..., and the target is named y.

    >>> [origin.name for origin in Uci("Kin 40K,yacht").origins()]
    ['uci-kin40k', 'uci-yacht']

    Raises UsageError if a data set is not one of the 25 in Table 3.
    """

    revision = 1
    checked_at: ClassVar[str] = "uci,set=yacht"

    set: str
    from_: str = _REPOSITORY

    def __post_init__(self) -> None:
        self._folders()

    def _folders(self) -> list[str]:
        folders = {_plain(dataset.title): folder for folder, dataset in _SETS.items()}
        if self.set == "all":
            return list(folders.values())
        for name in self.set.split(","):
            if _plain(name) not in folders:
                raise unknown("set", name, [*_SETS, "all"])
        return [folders[_plain(name)] for name in self.set.split(",")]

    def origins(self) -> Iterator[Origin]:
        location = self._location()
        for folder in self._folders():
            options = {"set": folder} | ({} if self.from_ == _REPOSITORY else {"from_": self.from_})
            files = {name: f"{location}/{folder}/{name}" for name in (_DATA, _MASK)}
            yield Origin(f"uci-{folder}", options, {"set": folder}, files)

    def _location(self) -> str:
        """Return the parent of the data sets' folders; ``from_`` may be the repository itself."""
        if "://" in self.from_:
            return f"{self.from_.rstrip('/')}/uci_datasets"
        if not Path(self.from_).is_dir():
            raise UsageError(
                f"--from {self.from_}: folder not found. Pass a copy of the repository "
                "uci_datasets, or omit --from to download it"
            )
        within = Path(self.from_, "uci_datasets")
        return str(within if within.is_dir() else Path(self.from_))

    def read(self, origin: Origin, files: Mapping[str, Path]) -> Dataset:
        dataset = _SETS[str(origin.key["set"])]
        values = _numbers(files[_DATA], dataset.rows, dataset.features + 1)
        masks = _numbers(files[_MASK], dataset.rows, _FOLDS)
        if not np.isin(masks, (0, 1)).all():
            raise DataError(f"{files[_MASK]}: masks must be 0 or 1. Download it again")
        notes = [*_ALL, *dataset.notes]
        if constant := np.flatnonzero(np.ptp(values[:, :-1], axis=0) == 0).tolist():
            names = ", ".join(f"x{k + 1}" for k in constant)
            notes.append(f"constant in every row: {names}")
        columns = {f"x{k + 1}": values[:, k] for k in range(dataset.features)}
        return Dataset(
            rows=pa.table(
                {name: pa.array(column) for name, column in columns.items()}
                | {"y": pa.array(values[:, -1])}
            ),
            target="y",
            folds={
                f"split_{k}": pa.array(np.where(masks[:, k] == 1, "test", "train").tolist())
                for k in range(_FOLDS)
            },
            notes=notes,
        )


def _plain(title: str) -> str:
    """Normalize a data set's name for comparison: ``Kin 40K`` becomes ``kin40k``."""
    return title.replace(" ", "").lower()


def _numbers(path: Path, rows: int, columns: int) -> NDArray[np.float64]:
    """Read a gzipped CSV file without a header as float64 [rows, columns]."""
    names = [f"f{k}" for k in range(columns)]
    try:
        with gzip.open(io.BytesIO(files.read_bytes(path, _MOST))) as file:
            most = _WIDEST * rows * columns
            if len(content := file.read(most + 1)) > most:
                raise DataError(
                    f"{path} expands to more than {most:,} bytes, too many for {rows:,} rows of "
                    f"{columns} numbers. Download it again"
                )
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            pyarrow.csv.ReadOptions(column_names=names),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.float64())
            ),
        )
    except (OSError, EOFError, StoreError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise DataError(f"{path} cannot be read: {why}. Download it again") from error
    if table.num_rows != rows or any(column.null_count for column in table.columns):
        raise DataError(
            f"{path} must have {rows:,} rows without empty fields (got {table.num_rows:,} rows). "
            "Download it again"
        )
    return np.column_stack([column.to_numpy() for column in table.columns])
