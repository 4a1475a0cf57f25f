"""What measures are made of: small summaries of two tables, the same for tables in memory and for parts of larger ones.

Summaries of parts of the records can be merged, and sums of products of ranks are exact (`products`), so that a measure
has one formula and one value, wherever the records lie.
"""
