"""Readers of the full sets, one file a repository, and `draw`, which made the shipped samples.

    python -m lightspeed_models.evidence.samplers FOLDER     # a folder of checkouts

Parquet needs pyarrow: pip install '.[evidence]'.
"""
