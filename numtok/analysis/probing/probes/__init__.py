"""Probes, one per file. The name of the file is the name of the probe."""
