"""Comparison of reports: experiments, seeds, requirements, published tables.

beside_published.py  published numbers next to measured ones
experiments.py       groups reports that differ only in the seed into experiments, with labels
requirements.py      thresholds of metrics, such as r2>=0.99
seeds.py             mean, standard deviation and interval over seeds, and Student's t-test
tokens_to_target.py  number of training tokens until a metric reaches a level
"""
