"""Numeral policies: scanner settings that define what counts as a number, for all schemes."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from numtok.errors import UsageError
from numtok.registry import Settings, parse_spec
from numtok.stored_json import convert

#: Regular expression (for Arrow) of finite numbers under any numeral policy.
NUMERAL = r"^[-+\x{2212}]?(?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?$"
_CHOICES = ("default", "xval")
_FLAGS = ("thousands", "percent")  # of the rule default


@dataclass(frozen=True)
class NumeralPolicy:
    """Settings that define what counts as a number in a text.

    Examples of specs are ``default``, ``thousands``, ``thousands,percent`` and ``xval``.

    rule
        ``default`` is numtok's own rule (docs/NUMERALS.md). ``xval`` is the pattern in xVal's
        public code, ``(?<!')-?\\d+(\\.\\d+)?([eE][-+]?\\d+)?(?!'|\\d)`` with ASCII digits.
    thousands
        Read ``1,234`` as 1234 (like NumGPT), not as 1 and 234.
    percent
        Read ``23%`` as 0.23 (like NumGPT), not as 23 and a percent sign.
    """

    revision: ClassVar[int] = 2
    rule: str = "default"
    thousands: bool = False
    percent: bool = False

    def __post_init__(self) -> None:
        if self.rule not in _CHOICES:
            raise UsageError(
                f"unknown numeral policy {self.rule!r}. Known: {', '.join(_CHOICES)}. "
                "Example: --numbers thousands"
            )
        if self.rule == "xval" and (self.thousands or self.percent):
            raise UsageError("the numeral policy 'xval' has no options. Use 'default'")

    @classmethod
    def parse(cls, spec: str) -> "NumeralPolicy":
        """Return the policy that a spec describes. Raises UsageError if the spec is invalid.

        >>> NumeralPolicy.parse("percent")
        NumeralPolicy(rule='default', thousands=False, percent=True)
        """
        if spec.partition(",")[0].partition("=")[0].removeprefix("no-") in _FLAGS:
            spec = f"default,{spec}"
        rule, positional, options = parse_spec(spec, "numeral policy")
        switches = {"yes": True, "no": False}
        for key, value in options.items():
            if key not in _FLAGS or value not in switches:
                raise UsageError(
                    f"numeral policy {spec!r}: flags must be {' or '.join(_FLAGS)} "
                    f"(got {key}={value})"
                )
        if positional is not None:
            raise UsageError(f"numeral policy {spec!r} takes no value after ':'")
        return cls(rule, **{key: switches[value] for key, value in options.items()})

    def settings(self) -> dict[str, Any]:
        """Return all settings and the revision as a dictionary, for digests and files."""
        return {"revision": self.revision} | asdict(self)

    @classmethod
    def from_settings(cls, settings: Settings) -> "NumeralPolicy":
        """Restore a policy from the result of :meth:`settings`. Raises UsageError if the revision
        differs, and ValueError if a value has the wrong type."""
        if settings.get("revision") != cls.revision:
            raise UsageError(
                f"the numeral policy has revision {settings.get('revision')!r}, but this numtok "
                f"has revision {cls.revision}. Encode the data again"
            )
        return convert(settings, cls)

    def spec(self) -> str:
        """Return the shortest spec that describes this policy."""
        return ",".join(flag for flag in _FLAGS if getattr(self, flag)) or self.rule
