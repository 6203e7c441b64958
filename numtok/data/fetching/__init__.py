"""What a source has, brought here: files, texts and fields.

download.py  files from the web, gone on with where they broke off
field.py     a field, object by object, and which of its days are left out
texts.py     texts as they are read, a file a split
"""
