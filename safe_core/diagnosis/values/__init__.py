"""Typed values in a text: times, dates, quantities, grades, sides."""
