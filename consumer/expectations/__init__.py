"""Where test cases are kept: each module is one ExpectationsSource of port.py."""
