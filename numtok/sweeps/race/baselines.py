"""The baselines of a race, fitted before the plan, which divides the time that is left."""

from numtok.evaluation.record_splits import read_record_splits
from numtok.evaluation.rivals import Rivals, merged, rivals
from numtok.evaluation.tabicl_rival import tabicl_rival
from numtok.evaluation.tabular_rival import tabular_rival
from numtok.settings.race import Config
from numtok.sweeps.race.candidates import Entrant
from numtok.sweeps.race.entrants import Encodings, Entered, predicted_rows
from numtok.sweeps.race.from_records import COLUMNS
from numtok.sweeps.race.plan import Progress, RaceProgress


def race_baselines(config: Config, entered: Entered, data: Encodings, progress: Progress) -> Rivals:
    """Return the predictions of the baselines for the test split, on all data of the race: texts
    and columns."""
    progress(RaceProgress("", "fitting baselines"))
    _, rows = predicted_rows(data, entered)
    of_data = [rivals(data.of(entry), entered.test, rows) for entry in _read_by(entered)]
    if entered.records is None:
        return of_data[0]
    records = read_record_splits(entered.records, str(config.target), entered.test)
    of_records = tabular_rival(records), tabicl_rival(records)
    return merged([*(each.by_row() for each in of_data), *of_records])


def _read_by(entered: Entered) -> list[Entrant]:
    """Return an entry that reads the table of columns, if there is one, and one that reads texts.
    Hidden states of a pretrained model are only read if there is nothing else."""
    columns = [entry for entry in entered.entries if entry.table in ("", COLUMNS)]
    texts = [entry for entry in entered.entries if entry.table is None]
    return [*columns[:1], *texts[:1]] or entered.entries[:1]
