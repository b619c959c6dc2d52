"""The marks that may end a sentence, and those that part what is within one."""

import re

SENTENCE_END = re.compile(r"[.!?;](?=[\s\"'”’)\]])|[。！？；\n]")
"""Ends a sentence, unless `sentences.py` tells otherwise: "Dr. Smith" and "E. coli" go on."""
PAUSE = re.compile(r"[,;:()\[\]–—，、：（）]")
