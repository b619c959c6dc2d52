"""The words that the diagnosis knows: abbreviations, synonyms, opposites, grammar."""
