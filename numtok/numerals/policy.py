"""What is a number: the settings of the scanner, one policy for all schemes."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from numtok.errors import UsageError
from numtok.registry import Settings, parse_spec
from numtok.stored_json import convert

#: What a finite number is written as, by any numeral policy; as Arrow's expressions have it.
NUMERAL = r"^[-+\x{2212}]?(?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?$"
_CHOICES = ("default", "xval")


@dataclass(frozen=True)
class NumeralPolicy:
    """``default``, ``default,thousands=yes,percent=yes`` or ``xval``.

    rule
        ``default`` is numtok's own rule (docs/NUMERALS.md); ``xval`` is the pattern of xVal's
        public code, ``(?<!')-?\\d+(\\.\\d+)?([eE][-+]?\\d+)?(?!'|\\d)`` with ASCII digits.
    thousands
        Read ``1,234`` as 1234 (as NumGPT does), not as 1 and 234.
    percent
        Read ``23%`` as 0.23 (as NumGPT does), not as 23 and a sign.
    """

    revision: ClassVar[int] = 2
    rule: str = "default"
    thousands: bool = False
    percent: bool = False

    def __post_init__(self) -> None:
        if self.rule not in _CHOICES:
            raise UsageError(
                f"unknown numeral policy {self.rule!r}; known: {', '.join(_CHOICES)}; "
                "give for example --numerals default,thousands=yes"
            )
        if self.rule == "xval" and (self.thousands or self.percent):
            raise UsageError("the numeral policy 'xval' has no options; use 'default' for them")

    @classmethod
    def parse(cls, spec: str) -> "NumeralPolicy":
        """Read a spec; UsageError says what is wrong with it.

        >>> NumeralPolicy.parse("default,percent=yes")
        NumeralPolicy(rule='default', thousands=False, percent=True)
        """
        rule, positional, options = parse_spec(spec, "numeral policy")
        switches = {"yes": True, "no": False}
        for key, value in options.items():
            if key not in ("thousands", "percent") or value not in switches:
                raise UsageError(
                    f"numeral policy {spec!r}: got {key}={value}; "
                    "allowed are thousands=yes|no and percent=yes|no"
                )
        if positional is not None:
            raise UsageError(f"numeral policy {spec!r}: nothing is allowed after ':'")
        return cls(rule, **{key: switches[value] for key, value in options.items()})

    def settings(self) -> dict[str, Any]:
        """The complete dictionary, revision included, that digests are taken over."""
        return {"revision": self.revision} | asdict(self)

    @classmethod
    def from_settings(cls, settings: Settings) -> "NumeralPolicy":
        """The inverse of :meth:`settings`; UsageError for another revision, ValueError for values
        of other types."""
        if settings.get("revision") != cls.revision:
            raise UsageError(
                f"the numeral policy was written at revision {settings.get('revision')!r}, this "
                f"numtok has revision {cls.revision}; encode the data again with this numtok"
            )
        return convert(settings, cls)

    def spec(self) -> str:
        """The shortest spec that :meth:`parse` reads back."""
        options = [key for key in ("thousands", "percent") if getattr(self, key)]
        return ",".join([self.rule] + [f"{key}=yes" for key in options])
