"""The probes: each file is one, named after the probe."""
