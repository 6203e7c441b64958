"""The stages: each reads artifacts or files and writes one artifact; they meet on disk."""
