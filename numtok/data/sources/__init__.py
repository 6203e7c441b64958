"""Sources: public data sets, one per file. Nothing here imports torch."""
