"""Sources: public data sets, one file a source, no torch."""
