"""Numeral policies: scanner settings that define what counts as a number, for all schemes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from numtok.errors import UsageError, unknown
from numtok.numerals.zones import check_zone
from numtok.registry import Settings
from numtok.stored_json import convert

#: Regular expression (for Arrow) of finite numbers under any numeral policy.
NUMERAL = r"^[-+\x{2212}]?(?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?$"

_RULES = ("default", "xval")
_CHOICES = {
    "decimal": ("point", "comma"),
    "groups": ("apostrophe", "space", "underscore", "indian"),
    "signs": ("dash", "paren", "trailing"),
}

#: Specs that have a name of their own.
PRESETS = {
    "english": "thousands,percent,signs=dash",
    "eu": "thousands,percent,decimal=comma,groups=space",
    "clinical": "units,dimensions,unicode",
    "finance": "thousands,percent,suffixes,units,signs=dash+paren+trailing",
    "code": "dimensions,groups=underscore",
}


@dataclass(frozen=True)
class NumeralPolicy:
    """Settings that define what counts as a number in a text.

    Examples of specs are ``default``, ``thousands,percent``, ``eu`` and
    ``units,groups=apostrophe+space``. docs/reference/numbers.md specifies every notation.

    rule
        ``default`` is numtok's own rule. ``xval`` is the pattern in xVal's public code,
        ``(?<!')-?\\d+(\\.\\d+)?([eE][-+]?\\d+)?(?!'|\\d)`` with ASCII digits; it has no flags.
    thousands
        Read ``1,234`` as 1234 (like NumGPT), not as 1 and 234.
    percent
        Read ``23%`` and ``23 %`` as 0.23 (like NumGPT).
    suffixes
        Read ``2.5k`` as 2500, and ``3 million`` as 3,000,000.
    fractions
        Read ``1/2``, ``1 1/2`` and ``1½`` as one number.
    units
        Read the digits after a known unit, currency or quantity, as in ``pH6.5`` and ``EUR250``.
    dimensions
        Read ``40x60`` as 40 and 60.
    unicode
        Read digits of all scripts, and powers of ten such as ``10⁵`` and ``4×10^5``.
    decimal
        Decimal separator: ``point`` or ``comma``. With ``comma``, points and commas exchange their
        roles, also in ``thousands`` and in ``groups=indian``.
    groups
        Further separators of groups of digits: ``apostrophe`` (``1'234``), ``space`` (``1 234``),
        ``underscore`` (``1_234``) and ``indian`` (``12,34,567``).
    signs
        Further notations of negative numbers: ``dash`` (an en dash or a non-breaking hyphen),
        ``paren`` (``(5.00)``) and ``trailing`` (``5-``).
    not_numbers
        Zones whose digits are never numbers: names of :data:`numtok.numerals.zones.NAMED`, and
        regular expressions. They are not part of the spec.
    """

    rule: str = "default"
    thousands: bool = False
    percent: bool = False
    suffixes: bool = False
    fractions: bool = False
    units: bool = False
    dimensions: bool = False
    unicode: bool = False
    decimal: str = "point"
    groups: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    not_numbers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise unknown("numeral policy", self.rule, [*_RULES, *FLAGS, *_CHOICES, *PRESETS])
        if self.rule == "xval" and self.flags():
            raise UsageError("the numeral policy 'xval' has no flags. Use 'default' with flags")
        for zone in self.not_numbers:
            check_zone(zone)

    @classmethod
    def parse(cls, spec: str, not_numbers: Sequence[str] = ()) -> "NumeralPolicy":
        """Return the policy that a spec describes, with zones. Raises UsageError if the spec or a
        zone is invalid.

        A spec is a list of rules, presets and flags; later ones override earlier ones.

        >>> NumeralPolicy.parse("eu,no-percent").spec()
        'thousands,decimal=comma,groups=space'
        """
        if spec == "auto":
            raise UsageError(
                "--numbers auto proposes a policy and chooses none. See the proposal with "
                "numtok profile --numbers auto, and pass what you want of it"
            )
        policy = cls()
        given: set[str] = set()
        name = ""
        for item in spec.split(","):
            if item in _CHOICES.get(name, ()) and name != "decimal":  # signs=dash,paren
                value = "+".join([*getattr(policy, name), item])
            elif item in PRESETS:
                policy, name = cls.parse(PRESETS[item]), ""
                continue
            elif item in _RULES:
                policy, name = cls(item), ""
                continue
            else:
                name, equals, value = item.partition("=")
                if not equals:
                    name = item.removeprefix("no-")
                    value = "yes" if name == item else "no"
                if name in given:
                    raise UsageError(f"numeral policy {spec!r} sets {name!r} twice")
                given.add(name)
            policy = replace(policy, **{name: _value(spec, name, value)})
        return replace(policy, not_numbers=tuple(not_numbers))

    @property
    def revision(self) -> int:
        """Revision of the rules by which this policy finds numbers. Policies that rewrite other
        notations have their own."""
        return 4 if self.is_rewritten else 3

    @property
    def is_rewritten(self) -> bool:
        """True if numbers may be written in another notation than the scanner's
        (:mod:`numtok.numerals.notations`)."""
        return any(flag != "thousands" for flag in self.flags())

    @property
    def has_passages(self) -> bool:
        """True if a number must be rewritten by its context, not only by the exchange of points and
        commas."""
        return any(flag not in ("thousands", "decimal=comma") for flag in self.flags())

    def settings(self) -> Settings:
        """Return the spec, the zones and the revision as a dictionary, for digests and files."""
        zones = json.dumps(self.not_numbers)
        return {"revision": self.revision, "spec": self.spec(), "not_numbers": zones}

    @classmethod
    def from_settings(cls, settings: Settings) -> "NumeralPolicy":
        """Restore a policy from the result of :meth:`settings`. Raises UsageError if the revision
        differs, and ValueError if a value has the wrong type."""
        zones = convert(json.loads(convert(settings.get("not_numbers"), str)), tuple[str, ...])
        policy = cls.parse(convert(settings.get("spec"), str), zones)
        if settings.get("revision") != policy.revision:
            raise UsageError(
                f"the numeral policy {policy.spec()!r} has revision {settings.get('revision')!r}, "
                f"but this numtok has revision {policy.revision}. Encode the data again"
            )
        return policy

    def flags(self) -> tuple[str, ...]:
        """Return the flags of this policy, each as a spec.

        >>> NumeralPolicy.parse("units,signs=dash+paren").flags()
        ('units', 'signs=dash', 'signs=paren')
        """
        bare = [flag for flag in FLAGS if getattr(self, flag)]
        if self.decimal != "point":
            bare.append(f"decimal={self.decimal}")
        several = (f"{key}={value}" for key in ("groups", "signs") for value in getattr(self, key))
        return (*bare, *several)

    def having(self, flag: str) -> "NumeralPolicy":
        """Return the policy with one more flag, as :meth:`flags` names it."""
        return self._changed(flag, present=True)

    def without(self, flag: str) -> "NumeralPolicy":
        """Return the policy without one of its flags, as :meth:`flags` names it."""
        return self._changed(flag, present=False)

    def _changed(self, flag: str, *, present: bool) -> "NumeralPolicy":
        name, _, value = flag.partition("=")
        changed: Any = present
        if name == "decimal":
            changed = value if present else "point"
        elif value:
            among = {*getattr(self, name)} - {value} | ({value} if present else set())
            changed = tuple(choice for choice in _CHOICES[name] if choice in among)
        return replace(self, **{name: changed})

    def spec(self) -> str:
        """Return a spec that describes this policy."""
        parts = [flag for flag in FLAGS if getattr(self, flag)]
        if self.decimal != "point":
            parts.append(f"decimal={self.decimal}")
        for key in ("groups", "signs"):
            if values := getattr(self, key):
                parts.append(f"{key}={'+'.join(values)}")
        return ",".join(parts) or self.rule


#: Flags without a value.
FLAGS = tuple(field.name for field in fields(NumeralPolicy) if field.type is bool)

#: Specs of all policies with exactly one flag.
SINGLE = (
    *FLAGS,
    "decimal=comma",
    *(f"{key}={value}" for key in ("groups", "signs") for value in _CHOICES[key]),
)


def _value(spec: str, name: str, value: str) -> Any:
    """Return the value of a setting. Raises UsageError if the name or the value is unknown."""
    if name in FLAGS and value in ("yes", "no"):
        return value == "yes"
    if name == "decimal" and value in _CHOICES["decimal"]:
        return value
    if name in ("groups", "signs"):
        values = () if value in ("no", "none") else tuple(value.split("+"))
        if set(values) <= set(_CHOICES[name]):
            return tuple(choice for choice in _CHOICES[name] if choice in values)
    if name in FLAGS:
        raise UsageError(f"numeral policy {spec!r}: {name} is yes or no (got {value!r})")
    if name in _CHOICES:
        joined = " or " if name == "decimal" else ", "
        more = "" if name == "decimal" else ", joined by +"
        raise UsageError(
            f"numeral policy {spec!r}: {name} is {joined.join(_CHOICES[name])}{more} (got "
            f"{value!r})"
        )
    raise unknown("numeral policy", name, [*_RULES, *FLAGS, *_CHOICES, *PRESETS])
