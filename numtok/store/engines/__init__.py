"""Engines that run independent units of work.

engine.py         engine interface, and selection of an engine by name
local.py          engine that uses spawned processes on this machine
ray.py            engine that uses the nodes of a Ray cluster
workers.py        number of worker processes, and scheduling of units of work
_ray_cluster.py   connection to a Ray cluster, and its nodes
"""
