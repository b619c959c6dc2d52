"""Where test cases are kept: a folder, an HTTP service, a topic. Each is an ExpectationsSource of source.py."""
