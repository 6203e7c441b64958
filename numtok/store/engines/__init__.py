"""Engines that run independent units of work.

engine.py         interface of engines, and the choice of the engine for a command
local.py          engine that uses spawned processes on this machine
ray.py            engine that uses the nodes of a Ray cluster
workers.py        number of worker processes, and the scheduling of units of work
_ray_cluster.py   connection to a Ray cluster, and its nodes
"""
