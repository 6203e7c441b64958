"""Both lists of mutants fit the code as it is; whether tests catch them, `just mutants` says."""

from tests.cases import each
from tests.mutants.mutant import LISTS, ROOT, Mutant, read

MUTANTS = [mutant for name in LISTS for mutant in read(name)]


@each("mutant", MUTANTS)
def test_a_mutant_changes_one_place_and_compiles(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    assert source.count(mutant.old) == 1 and mutant.breaks
    assert mutant.applied(source) != source
    compile(mutant.applied(source), mutant.file, "exec")


def test_the_lists_have_sixty_each_and_no_name_comes_twice() -> None:
    assert all(len(read(name)) >= 60 for name in LISTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
