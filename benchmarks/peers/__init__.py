"""The same tasks done by tfrio, by its peers and by bare limits, one module each.

Each module has `TASKS`: name of a task -> function of a `Job`, which does the work and returns the
number of records done. They run in workers, in environments of their own.
"""
