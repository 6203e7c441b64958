"""Sizes of models by name, and what each is trained with unless asked otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from numtok.errors import UsageError, unknown
from numtok.models.trunks.bigru import Bigru
from numtok.models.trunks.mlp import Mlp
from numtok.registry import name_in, parse_spec

T = TypeVar("T", "Preset | Bigru", Mlp)


@dataclass(frozen=True)
class Preset:
    """A trunk's size and the learning rate that suits it.

    context
        The most tokens of a row; 0: the longest that is learnt, and a little more.
    head_layers
        Layers of the token head: 1, a linear map; 2, as in xVal's public code.
    tied
        Whether the token head's last map is the table of token vectors (GPT-2).
    """

    layers: int
    heads: int
    width: int
    context: int = 0
    positions: str = "learned"
    dropout: float = 0.0
    head_layers: int = 1
    tied: bool = False
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.head_layers not in (1, 2):
            raise UsageError(f"head_layers={self.head_layers} is not possible; allowed: 1 and 2")
        if self.tied and self.head_layers != 1:
            raise UsageError("tied=yes needs head_layers=1: a table can only be the one map")
        if not 0 < self.learning_rate < 1:
            raise UsageError(
                f"learning_rate={self.learning_rate} is not possible; it is between 0 and 1"
            )


PRESETS: dict[str, Preset | Bigru] = {
    # About 0.8, 4.7 and 25 million parameters in the blocks.
    "nano": Preset(4, 4, 128, learning_rate=2e-3),
    "micro": Preset(6, 8, 256, learning_rate=5e-4),
    "small": Preset(8, 8, 512, learning_rate=3e-4),
    # The paper's: 6 layers, 6 heads, width 768, two-layer heads (xVal, Appendix A; public code).
    "xval": Preset(6, 6, 768, 1024, dropout=0.1, head_layers=2, learning_rate=1e-4),
    # The smallest GPT-2 (Radford et al. 2019).
    "gpt2": Preset(12, 12, 768, 1024, dropout=0.1, tied=True, learning_rate=2.5e-4),
    "bigru": Bigru(),  # for labels
}


TRUNKS = {"mlp": Mlp()}  # for tables


def preset(spec: str) -> Preset | Bigru:
    """A preset with some settings changed: ``nano,layers=2,positions=rotary``.

    Raises UsageError for an unknown name or setting.
    """
    return _changed(PRESETS, spec)


def trunk(spec: str) -> Mlp:
    """As :func:`preset`, for tables: ``mlp,layers=3,width=256``."""
    return _changed(TRUNKS, spec)


def shortest(spec: str) -> str:
    """The shortest spec of the same preset or trunk: seeds of one experiment are told by it.

    >>> shortest("nano,width=64,layers=4"), shortest("mlp,layers=3,width=256")
    ('nano,width=64', 'mlp')
    """
    name = name_in(spec)
    usual: Preset | Bigru | Mlp = TRUNKS[name] if name in TRUNKS else PRESETS[name]
    chosen = trunk(spec) if name in TRUNKS else preset(spec)
    parts = [name]
    for field in fields(usual):
        value = getattr(chosen, field.name)
        if value != getattr(usual, field.name):
            told = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
            parts.append(f"{field.name}={told}")
    return ",".join(parts)


def _changed(known: Mapping[str, T], spec: str) -> T:
    name, positional, options = parse_spec(spec, "preset")
    if name not in known:
        if name in PRESETS or name in TRUNKS:
            what, mine = ("texts", "a table") if name in PRESETS else ("tables", "a text")
            raise UsageError(f"preset {name!r} is of {what}; {mine} takes {', '.join(known)}")
        raise unknown("preset", name, known)
    if positional is not None:
        raise UsageError(f"preset {name!r} takes no value after ':', got {spec!r}")
    types = {field.name: field.type for field in fields(known[name])}
    changes: dict[str, Any] = {}
    for key, text in options.items():
        if key not in types:
            raise unknown(f"setting of preset {name!r}", key, types)
        changes[key] = _read(str(types[key]), key, text)
    return replace(known[name], **changes)


def _read(kind: str, key: str, text: str) -> Any:
    try:
        if "bool" in kind:
            return {"yes": True, "no": False}[text]
        return int(text) if "int" in kind else float(text) if "float" in kind else text
    except (ValueError, KeyError):
        form = "yes or no" if "bool" in kind else "a number"
        raise UsageError(f"preset: {key}={text!r} is not {form}") from None
