"""Artifact storage, and engines that run independent units of work.

An artifact is a folder with the output of a command. It is published by one rename, so it is never
incomplete.

engines/         engines that run independent units of work
access.py        methods of a store for code below the stages
artifact.py      on-disk artifact format: manifest, list of files, receipts
columns.py       checked reading of the store's Parquet files
draft.py         drafts (artifacts being made), and how they are published
locks.py         file locks
provenance.py    versions of numtok and its libraries with which an artifact was made
quota.py         limits on external data written to disk
receipts.py      receipts, which record finished units of work
store.py         lookup, creation, removal and cleanup of artifacts
verification.py  verification of artifacts against their manifests
"""
