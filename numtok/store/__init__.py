"""Artifacts, complete or absent, and where independent work runs.

engines/         how independent units of work get run
artifact.py      what one artifact is on disk: manifest, list of files, receipts
columns.py       Parquet files of the store, read back and compared with what they must be
draft.py         an artifact being made, and how it is published
locks.py         a file each, held by at most one process
provenance.py    what made an artifact: numtok's version and commit, the libraries
quota.py         how much of what comes from elsewhere may be written to a disk
receipts.py      what vouches for the finished files of one unit of work
store.py         where artifacts are: found, made, removed, swept
verification.py  whether an artifact still is what was written down of it
"""
