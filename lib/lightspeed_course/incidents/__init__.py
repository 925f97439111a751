"""The incident room: a job that runs slower than its plan, for one hidden reason.

    incident()          # a page: buy measurements, then name cause and fix
    lightspeed incident # the same in a terminal

A setting (training.py, serving.py) is a simulator of the library with faults that can be put in,
and measurements that are computed from what the simulator then does. No outcome is typed. A seed
draws the cause and its size (incident.py). The score (score.py) sets what was paid beside the
cheapest policy there is (policy.py).
"""
