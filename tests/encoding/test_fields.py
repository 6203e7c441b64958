"""Fields of JSON-like texts, templates and prose, for any division of the rows."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numtok.encoding.fields import places, wording
from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy
from tests.cases import each
from tests.counted import count, labels, values


def fields(*texts: str, policy: str = "default") -> dict[str, list[float]]:
    """Return the sorted values of each field, with fields in the order of the text."""
    found = values(count([[texts]], policy=NumeralPolicy.parse(policy)))
    return {label: sorted(counts.elements()) for label, counts in found.items()}


# --- JSON-like texts ---------------------------------------------------------------------------


@each(
    ("texts", "expected"),
    [
        (['{"a": 1, "b": {"c": -2.5}}'], {"a": [1], "b.c": [-2.5]}),
        (["{'a': 1, 'b': {'c': -2.5}}"], {"a": [1], "b.c": [-2.5]}),
        (["[1, 2, 3]"], {"[0]": [1], "[1]": [2], "[2]": [3]}),
        (["(1, 2)", "[3, 4]"], {"[0]": [1, 3], "[1]": [2, 4]}),
        (["(1,)"], {"[0]": [1]}),
        (["[1, 2]", "[3]"], {"[]": [1, 2, 3]}),
        (["[1, 2]", "[]"], {"[0]": [1], "[1]": [2]}),  # an empty list does not count
        (["[1, 2, 3, 4, 5, 6, 7, 8]"], {f"[{k}]": [k + 1] for k in range(8)}),
        (["[1, 2, 3, 4, 5, 6, 7, 8, 9]"], {"[]": list(range(1, 10))}),
        (["[[1, 2], [3, 4], [5, 6]]", "[[7, 8]]"], {"[][0]": [1, 3, 5, 7], "[][1]": [2, 4, 6, 8]}),
        (["[[1, 2], [3]]"], {"[0][0]": [1], "[0][1]": [2], "[1][0]": [3]}),
        (["[[1, 2], [3]]", "[[4], [5, 6]]"], {"[0][]": [1, 2, 4], "[1][]": [3, 5, 6]}),
        (["[[1, 2], [3]]", "[[4, 5]]"], {"[][]": [1, 2, 3, 4, 5]}),
        (['{"a": [1, {"b": 2}]}'], {"a[0]": [1], "a[1].b": [2]}),
        (['{"a": 1}', '{"a": [2]}', '{"a": {"b": 3}}'], {"a": [1], "a[0]": [2], "a.b": [3]}),
        # Strings: quotes, brackets and escapes in them are not structure.
        (['{"a": "took 5 s", "b": 2}'], {"a": [5], "b": [2]}),
        ([r'{"a": "say \"7\", [8", "b": 2}'], {"a": [7, 8], "b": [2]}),
        ([r"{'a': 'it\'s 7', 'b': 2}"], {"a": [7], "b": [2]}),
        ([r'{"a": "back\\", "b": 2}'], {"b": [2]}),
        (["""{'a': "it's 7", 'b': 2}"""], {"a": [7], "b": [2]}),
        # Keys: numbers in them, quotes of both kinds, no quotes, spaces.
        (['{"5 km": 1, "x": 2}'], {"(keys)": [5], "['5 km']": [1], "x": [2]}),
        (["{5: 1, 6: 2}"], {"(keys)": [5, 6], "5": [1], "6": [2]}),
        (["{'a': 1}", '{"a": 2}'], {"a": [1, 2]}),
        (['{"a.b": 1, "": 2, "c[]": 3}'], {"['a.b']": [1], "['']": [2], "['c[]']": [3]}),
        ([r'{"Gr\u00f6\u00dfe": 1, "a\"b": 2}'], {"Größe": [1], "['a\"b']": [2]}),
        ([r'{"\ud83d": 1, "\x": 2}'], {r"\ud83d": [1], r"\x": [2]}),
        ([r"{'it\'s': 1}"], {repr(r"it\'s").join("[]"): [1]}),
        (['{"Größe": 1, "日本": 2}'], {"Größe": [1], "日本": [2]}),
        # Words that are not numbers, and forms of numbers.
        (["[True, None, nan, 1.5e3, x1, -7]"], {"[3]": [1500], "[5]": [-7]}),
        (['{"a":null,"b":1e-5}'], {"b": [1e-5]}),
        (["\n [ 1 ,\t2 ]\n"], {"[0]": [1], "[1]": [2]}),
    ],
)
def test_a_json_like_text_gives_paths(texts: list[str], expected: dict[str, list[float]]) -> None:
    found = fields(*texts)
    assert found == expected
    assert list(found) == list(expected)


@each(
    "text",
    [
        "[1, 2", "1, 2]", "[1, 2]]", "[1, 2}", "{1, 2}", '{"a" 1}', '{"a": }', '{"a": 1 2}',
        '{"a": "1}', "[1 2]", "[,1]", "[1,,2]", "[1] [2]", "[1] and 2", "[1; 2]", "f(1, 2)",
        '{"a": 1, : 2}', '{[1]: 2}', "[1: 2]", "{1: 2: 3}", "[" * 65 + "1" + "]" * 65,
    ],
)  # fmt: skip
def test_malformed_text_is_taken_as_text(text: str) -> None:
    # Two equal rows form a template; in any case, there are no keys or indices.
    for label in fields(text, text):
        assert "[" not in label
        assert label.startswith(("#", "after"))


def test_nesting_of_64_brackets_is_still_json_like() -> None:
    assert fields("[" * 64 + "1" + "]" * 64) == {"[0]" * 64: [1]}


def test_numbers_with_commas_are_one_item() -> None:
    policy = "thousands"
    assert fields("[1,234, 5]", policy=policy) == {"[0]": [1234], "[1]": [5]}


def test_an_object_of_many_keys_is_a_map() -> None:
    few = [json.dumps({f"k{k}": {"n": k}}) for k in range(places.KEYS_OF_RECORD)]
    assert list(fields(*few)) == [f"k{k}.n" for k in range(places.KEYS_OF_RECORD)]
    many = [json.dumps({f"user{k}": {"n": k}}) for k in range(places.KEYS_OF_RECORD + 1)]
    found = fields(*many)
    # Digits in names are parts of words, so only the values are numbers.
    assert found == {"*.n": list(range(places.KEYS_OF_RECORD + 1))}
    # Also if no single unit has that many keys.
    in_parts = count([[many[:20]], [many[20:]]])
    assert list(labels(in_parts).values()) == ["*.n"]


def test_more_places_than_can_be_kept_are_one_field() -> None:
    deep = {
        f"a{i}": {f"b{j}": {f"c{k}": 1 for k in range(20)} for j in range(20)} for i in range(20)
    }
    found = count([[[json.dumps(deep)]]])
    assert sum(tally.numbers for tally in found.tallies.values()) == 8000
    assert len(found.fields) == places.NODES
    assert "(elsewhere)" in labels(found).values()


def test_optional_parts_stand_where_the_rows_have_them() -> None:
    rows = ['{"p": {"a": 1}, "z": 9}', '{"p": {"a": 1, "b": 2}, "q": 3, "z": 9}']
    assert list(fields(*rows)) == ["p.a", "p.b", "q", "z"]


# --- other texts -------------------------------------------------------------------------------


def test_one_template_names_places_by_the_words_before() -> None:
    rows = [f"Temperature {k}.5 C, pressure {k} to {k + 1} Pa; {k} {k}" for k in range(20)]
    assert list(fields(*rows)) == [
        'after "Temperature"',
        'after "pressure"',
        'after "to"',
        'after "Pa"',
        '#2 after "Pa"',
    ]


def test_a_word_that_comes_twice_gives_two_places() -> None:
    rows = [f"of {k} and {k + 1} and {k + 2}" for k in range(3)]
    assert fields(*rows) == {
        'after "of"': [0, 1, 2],
        'after "and"': [1, 2, 3],
        '#2 after "and"': [2, 3, 4],
    }


def test_a_few_templates_are_a_few_groups_with_an_example_each() -> None:
    rows = [f"The {what} of {k} is {k}." for k in range(5) for what in ("product", "sum")]
    found = count([[[*rows, "The sum of 5 is 5."]]])  # the most common template comes first
    assert list(labels(found).values()) == [
        'A after "of"',
        'A after "is"',
        'B after "of"',
        'B after "is"',
    ]
    examples = found.fields.examples(list(labels(found)))
    assert examples == {"A": "The sum of 0 is 0.", "B": "The product of 0 is 0."}


def test_signs_and_brackets_make_no_template() -> None:
    rows = ["((1 + 2) * 3) = 9", "(1 - (2 + 3)) = -4", "1 + 2 = 3"]
    assert fields(*rows) == {"#1": [1, 1, 1], "#2": [2, 2, 2], "#3": [3, 3, 3], "#4": [-4, 9]}


def test_digits_in_a_word_make_no_other_word() -> None:
    rows = [f"2024-03-05T{k:02d}:{k + 10}:01Z cpu={k}.5 mem={k}" for k in range(20)]
    assert list(fields(*rows)) == [
        "#1", "#2", "#3", 'after "T"', '#2 after "T"', '#3 after "T"', 'after "cpu"', 'after "mem"',
    ]  # fmt: skip
    rows = [f"host{k} load {k} of x{k}y{k + 7}: {k}" for k in range(20)]
    assert list(fields(*rows)) == ['after "load"', 'after "x#y#"']
    apart = [f"T {k} T1 {k} T12x {k} T123x {k}" for k in range(20)]
    assert list(fields(*apart)) == [
        'after "T"', 'after "T#"', 'after "T#x"', '#2 after "T#x"',
    ]  # fmt: skip


def test_targets_name_their_fields_first() -> None:
    rows = [f"{k} + 1 = {k + 1}" for k in range(10)]
    targets = {row: {"sum": [(8, len(row))]} for row in rows}
    found = values(count([[rows]], targets))
    assert {label: sorted(own) for label, own in found.items()} == {
        "#1": list(range(10)),
        "#2": [1],
        "sum": list(range(1, 11)),
    }
    text = '{"a": 1, "b": 2}'
    assert list(values(count([[[text]]], {text: {"y": [(14, 15)]}}))) == ["a", "y"]


def test_numbers_behind_a_target_are_counted_with_it() -> None:
    rows = [f"{k} {k + 10} {k + 100}; a {k} a {k + 10} {k}" for k in range(1, 9)]
    targets = {row: {"y": [(2, 4)]} for row in rows}
    assert list(values(count([[rows]], targets))) == [
        "#1", "#3", 'after "a"', '#2 after "a"', '#3 after "a"', "y",
    ]  # fmt: skip


def test_targets_of_many_names_are_fields_of_their_own() -> None:
    rows = [f"{k}" for k in range(300)]
    targets = {row: {f"t{row}": [(0, len(row))]} for row in rows}
    found = values(count([[rows[:100], rows[100:]], [rows]], targets))
    assert found == {f"t{k}": {float(k): 2} for k in range(300)}


def test_the_lines_of_a_table_share_their_columns() -> None:
    rows = ["\n".join(f"{k}.5, {k}, {k}e3, {word}" for k in range(12)) for word in ("a", "b")]
    assert list(fields(*rows)) == ["#1", "#2", "#3"]


@each("separator", [",", ";", "\t", "|", " | "])
def test_a_column_is_one_field_whatever_the_other_columns_say(separator: str) -> None:
    cities = [f"{first}{last}" for first in ("Ber", "Lon", "Ma", "Ro") for last in ("lin", "me")]
    for kinds in (2, 8):
        rows = [
            separator.join([f"{k}.5", cities[k % kinds], f"-{k}", f"{k}e3"]) for k in range(1, 40)
        ]
        assert {label: len(own) for label, own in fields(*rows).items()} == {
            "column 1": 39, "column 3": 39, "column 4": 39,
        }  # fmt: skip


@each(
    ("text", "expected"),
    [
        ("2024-03-05 13:00,1.5", ["column 1", *(f"#{k} in column 1" for k in (2, 3, 4, 5)),
                                  "column 2"]),
        ('"Smith, John",5,7', ["column 2", "column 3"]),
        ('"x","5","7"', ["column 2", "column 3"]),
        ("12 Main Street,5,7", ["column 1", "column 2", "column 3"]),
        ("a,b\n1,2\n3,4\n", ["column 1", "column 2"]),
        (",".join(map(str, range(40))), [*(f"column {k}" for k in range(1, 33)), "column 33 on"]),
        # not tables
        ("x 12,5", ['after "x"', '#2 after "x"']),
        ("12,5 kg", ["#1", "#2"]),
        ("1, 2, 3", ["#1", "#2", "#3"]),
        ("12,5;3,4", ["#1", "#2", "#3", "#4"]),
        ("a=1,b=2", ['after "a"', 'after "b"']),
        ("it is 5, not 6", ['after "is"', 'after "not"']),
        ("5", ["#1"]),
    ],
)  # fmt: skip
def test_lines_of_a_table_are_those_whose_fields_are_numbers(
    text: str, expected: list[str]
) -> None:
    assert list(fields(text, text)) == expected


def test_many_numbers_after_a_word_have_one_field_from_the_17th_on() -> None:
    rows = [" ".join(str(k) for k in range(30))] * 3
    assert list(fields(*rows))[-2:] == ["#16", "#17 on"]
    assert fields(*rows)["#17 on"] == sorted([*range(16, 30)] * 3)


def test_rows_that_differ_share_the_word_before_the_number() -> None:
    names = ["Anna", "Ben", "Carla", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jan"]
    rows = [f"{name} has {k} apples and eats {k}" for k, name in enumerate(names)]
    assert list(fields(*rows)) == ['after "has"', 'after "eats"']


def test_prose_is_one_field() -> None:
    rows = [
        " ".join(f"w{chr(97 + (7 * i + j) % 26)}{chr(97 + j)} {i}" for j in range(5))
        for i in range(30)
    ]
    assert list(fields(*rows)) == ["text"]
    assert list(fields("The answer is 42, of 7.")) == ["text"]  # a single row repeats nothing


def test_rows_without_numbers_and_empty_rows_have_no_field() -> None:
    assert fields("", "no number", "{}", "[]", '{"a": "b"}') == {}
    assert count([[]]).rows == 0


def test_json_like_rows_and_others_can_be_mixed() -> None:
    assert list(fields('{"a": 1}', "now 2", '{"a": 3}', "now 4")) == ["a", 'after "now"']


# --- any division of the rows ------------------------------------------------------------------

_KEYS = st.sampled_from(["a", "b", "c d"])
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 99) | st.none() | st.just("x"),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=25,
)
_ROWS = st.lists(st.dictionaries(_KEYS, _JSON, min_size=1, max_size=3), min_size=1, max_size=8)


def by_rule(rows: Sequence[Any]) -> dict[str, Counter[float]]:
    """Apply the rule for JSON-like rows independently, to all rows at once."""
    found: dict[str, Counter[float]] = defaultdict(Counter)

    def visit(path: str, there: Sequence[Any]) -> None:
        for value in there:
            if isinstance(value, int) and not isinstance(value, bool):
                found[path.removeprefix(".")][float(value)] += 1
        lists = [value for value in there if isinstance(value, list) and value]
        lengths = {len(value) for value in lists}
        if len(lengths) == 1 and max(lengths) <= places.TUPLE:
            for k in range(max(lengths)):
                visit(f"{path}[{k}]", [value[k] for value in lists])
        elif lists:
            visit(f"{path}[]", [item for value in lists for item in value])
        objects = [value for value in there if isinstance(value, dict)]
        for key in dict.fromkeys(key for value in objects for key in value):
            step = f"[{key!r}]" if " " in key else f".{key}"
            visit(path + step, [value[key] for value in objects if key in value])

    visit("", rows)
    return dict(found)


def divided(data: st.DataObject, rows: Sequence[str]) -> list[list[list[str]]]:
    """Divide rows, in order, into units, and units into batches, at any positions."""
    units: list[list[list[str]]] = [[[]]]
    for row in rows:
        cut = data.draw(st.sampled_from(["", "", "batch", "unit"]))
        if cut == "unit":
            units.append([[]])
        elif cut == "batch":
            units[-1].append([])
        units[-1][-1].append(row)
    return units


@pytest.mark.integration
@settings(max_examples=12)
@given(_ROWS, st.data())
def test_paths_follow_the_rule_however_rows_are_divided(rows: list[Any], data: Any) -> None:
    write = data.draw(st.sampled_from([json.dumps, repr]))
    texts = [write(row) for row in rows]
    expected = by_rule([row for row in rows if any(char.isdigit() for char in write(row))])
    assert values(count([[texts]])) == expected
    found = count(divided(data, texts))
    assert values(found) == expected
    assert list(values(found)) == list(values(count([[texts]])))


_WORDS = st.lists(
    st.sampled_from(["sum", "of", "and", "is", "5", "-2.5", "7", "\n", "=", "x"]), max_size=8
)


@given(st.lists(_WORDS.map(" ".join), min_size=1, max_size=30), st.data())
def test_texts_give_the_same_fields_however_rows_are_divided(texts: list[str], data: Any) -> None:
    whole, found = count([[texts]]), count(divided(data, texts))
    assert list(values(found).items()) == list(values(whole).items())


@given(st.lists(_WORDS.map(" ".join), min_size=1, max_size=30), st.data())
def test_texts_give_the_same_fields_in_any_order_of_the_rows(texts: list[str], data: Any) -> None:
    apart = [f"{text} {k}" for k, text in enumerate(texts)]  # distinct rows: ids go by order
    whole, found = count([[apart]]), count(divided(data, data.draw(st.permutations(apart))))
    assert list(values(found).items()) == list(values(whole).items())


def test_a_word_and_the_end_of_its_line_are_two_anchors_in_any_order() -> None:
    rows = [f"{word}: {k}" for word in ["salt", "corn", *"abcdefg"] for k in range(9)]
    rows += [f"{word}:\n{k}" for word in ["salt", "corn", *"abcdefg"] for k in range(9)]
    expected = values(count([[rows]]))
    assert expected["#1"].total() == 81
    assert values(count([[rows[::-1]]])) == expected
    assert values(count([[rows[81:], rows[:40]], [rows[40:81]]])) == expected


@each("templates", [wording.MOST_TEMPLATES, wording.MOST_TEMPLATES + 1])
def test_templates_of_two_units_count_together(templates: int) -> None:
    rows = [f"{chr(97 + k) * 3} and {k}" for k in range(templates)] * 2
    half = [rows[:5] + rows[templates : templates + 5], rows[5:templates] + rows[templates + 5 :]]
    found = list(labels(count([[half[0]], [half[1]]])).values())
    if templates == wording.MOST_TEMPLATES:
        assert found == [f'{chr(65 + k)} after "and"' for k in range(templates)]
    else:
        assert found == ['after "and"']


_PIECES = st.sampled_from(
    [*"[](){},:'\"\\ \n.e-%", "1", "23", "4.5", "ab", "é", "\u2212", "😀", "k:"]
)


@given(st.lists(st.lists(_PIECES, max_size=30).map("".join), max_size=6), st.data())
def test_whatever_comes_in_every_number_has_one_field(texts: list[str], data: Any) -> None:
    whole = values(count([[texts]]))
    numbers = sum(sum(counts.values()) for counts in whole.values())
    assert numbers == len(Texts.of(texts).find(NumeralPolicy()).starts)
    assert values(count(divided(data, texts))) == whole


@each("brackets", [1, 2, 63, 64, 65, 200])
@each("kind", ["[", "(", "{", "[{"])
def test_brackets_that_are_not_closed_are_text(brackets: int, kind: str) -> None:
    text = kind * brackets + "1"
    assert list(fields(text, text)) == ["#1"]
