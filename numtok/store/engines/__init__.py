"""How independent units of work get run.

local.py    runs independent units of work, in spawned processes
workers.py  how many processes a command uses, and what each has of the machine
"""
