"""Comparison of reports: experiments, seeds, requirements, published tables.

beside_published.py  comparison of published numbers with measured ones
experiments.py       experiments, which are groups of reports that differ only in the seed
requirements.py      thresholds for metrics, such as r2>=0.99
seeds.py             mean, standard deviation and interval over seeds, and Student's t-test
tokens_to_target.py  number of training tokens until a metric reaches a level
"""
