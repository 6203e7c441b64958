"""Conversion of option values, for which pydantic is imported only where it is needed.

Typer converts every value with pydantic, even None, and importing pydantic takes a seventh of the
time of a short command. Values of the right type, such as defaults and texts, need no conversion,
and most integers need only ``int``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param


def convert_if_needed(parameters: Iterable[Any]) -> None:
    """Set the conversion of typer's parameters to one that skips values of the right type."""
    for parameter in parameters:
        described = parameter.type_descriptor
        parameter._runtime_param = _Conversion(
            described.parameter_info, described.annotation, described
        )


@dataclass(frozen=True)
class _Conversion(RuntimeParam):
    """Typer's conversion of the values of one parameter, if they need any."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        if self.descriptor.is_list and isinstance(value, tuple):
            (kind,) = get_args(self.annotation)
            if all(_has_type(item, kind) for item in value):
                return list(value)
        elif _has_type(value, self.annotation):
            return value
        elif self.annotation is int and not self.descriptor.is_ranged and _is_short_integer(value):
            return int(value)
        return build_runtime_param(self.descriptor)._coerce_value(value, param=param, ctx=ctx)


def _has_type(value: Any, kind: Any) -> bool:
    # Lone surrogates, which typer rejects, are not printable.
    return type(value) is kind and (kind is not str or value.isprintable())


def _is_short_integer(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16
