"""Tests as sentences; what stands under `support` is shared by them and measured against nothing of the product."""
