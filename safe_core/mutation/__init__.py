"""Mutation testing of expectations: alter what a case tells, and see whether its lists would notice."""

from safe_core.mutation.alteration import KINDS, Alteration, MutantKind
from safe_core.mutation.mutants import MOST_MUTANTS, Mutant, MutatedCase, alterations

__all__ = ["KINDS", "MOST_MUTANTS", "Alteration", "Mutant", "MutantKind", "MutatedCase", "alterations"]
