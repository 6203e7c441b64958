"""How independent units of work get run.

engine.py         what each engine promises, and which one is asked for
local.py          runs independent units of work, in spawned processes
ray.py            likewise on the nodes of a Ray cluster
workers.py        how many processes a command uses, and units under way in them
_ray_cluster.py   joining a Ray cluster, and its nodes
"""
