"""The marks that may end a sentence, those that part what is within one, and the dashes of a range."""

import re

from safe_core.diagnosis.words import word_set

SENTENCE_END = re.compile(r"[.!?;](?=[\s\"'”’)\]])|[。！？；\n]")
"""Ends a sentence, unless `sentences.py` tells otherwise: "Dr. Smith" and "E. coli" go on."""
PAUSE = re.compile(r"[,;:()\[\]–—，、：（）]")
DASHES = word_set("- \u2011 \u2013 \u2014")
"""May stand between the two ends of a range: "2-3 hours"."""
