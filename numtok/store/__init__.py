"""Storage of artifacts, which are complete or absent, and engines that run units of work.

engines/         engines that run independent units of work
artifact.py      format of an artifact on disk: manifest, list of files, receipts
columns.py       checked reading of the store's Parquet files
draft.py         drafts of artifacts, and their publication
locks.py         file locks
provenance.py    versions of numtok and its libraries that made an artifact
quota.py         limits on external data written to disk
receipts.py      receipts for the finished files of a unit of work
store.py         lookup, creation, removal and cleanup of artifacts
verification.py  verification of artifacts against their manifests
"""
