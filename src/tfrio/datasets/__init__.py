"""Datasets that train right: every record exactly once, any workers and ranks, resumable.

``plan``, ``order``, ``state``, ``mixture`` and ``split`` are pure arithmetic. ``source`` and
``reader`` turn a plan into batches of NumPy columns. ``torch_*`` put tensors around them.
"""
