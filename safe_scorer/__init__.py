"""The package that is named as the distribution is; `python -m safe_scorer` is `safe`."""
