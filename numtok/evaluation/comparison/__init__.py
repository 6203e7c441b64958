"""Several reports side by side: experiments, seeds, limits, published tables.

beside_published.py  published numbers beside measured ones
experiments.py       reports that differ only in the seed are one experiment; labels
requirements.py      limits of figures such as r2>=0.99
seeds.py             mean, deviation and interval over seeds, and Student's t-test
tokens_to_target.py  how much models had read when a figure reached a level
"""
