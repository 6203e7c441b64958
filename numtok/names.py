"""What artifacts may be called."""

import re

#: Of an artifact or its kind, and of a unit of work.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
