"""How hypothesis runs: the same examples each time, and no limit on one example's time."""

from hypothesis import HealthCheck, settings

_COMMON = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.register_profile("default", _COMMON, max_examples=80)
settings.register_profile("long", _COMMON, max_examples=3000)
settings.load_profile("default")

#: For tests marked slow: ``@LONG`` above ``@given``.
LONG = settings(settings.get_profile("long"))
