"""Engines that run independent units of work.

engine.py         the contract of engines, and their selection
local.py          units of work in spawned processes on this machine
ray.py            units of work on the nodes of a Ray cluster
workers.py        number of processes of a command, and scheduling of units
_ray_cluster.py   connection to a Ray cluster, and its nodes
"""
