"""Reads lines of a layout and an ID, and writes what the ID consists of."""

import sys

from snowflake_decode import decode

for line in sys.stdin:
    layout, id = line.rstrip("\n").split("\t")
    decoded = decode(id, layout)
    print(layout, id, decoded.created_at.isoformat(), *decoded[1:], sep="\t")
