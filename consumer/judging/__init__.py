"""A model as second opinion on what rules leave open (contract.md, "Opinions"): no score or label depends on it.

Only `endpoint` imports the client of the model's interface, which is an extra.
"""
