"""The only package of SAFE that imports aiokafka.

Where correctness needs what aiokafka does not offer, SAFE uses private names of the library. They are all in
`aiokafka_internals.py`, each with a test, so that an incompatible release fails a test and not a clinic.
"""
