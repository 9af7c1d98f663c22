"""Reads when and where an ID of the PostgreSQL extension snowflake was generated, without the database."""

import operator
import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

__all__ = ["LAYOUTS", "Decoded", "decode"]

#: The presets of the extension; see the section "Layouts" of its reference.
LAYOUTS = {
    "default": "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z",
    "twitter": "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z",
    "discord": "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z",
    "instagram": "timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z",
    "sonyflake": "timestamp:39 sequence:8 node:16 tick:10ms epoch:2014-09-01T00:00:00Z",
    "uid-generator": "timestamp:28 node:22 sequence:13 tick:1s epoch:2016-05-19T16:00:00Z",
    "tsid": "timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z",
    "mastodon": "timestamp:47 sequence:16 tick:1ms epoch:1970-01-01T00:00:00Z",
    "clickhouse": "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z",
    "pgedge": "timestamp:41 node:10 sequence:12 tick:1ms epoch:2023-01-01T00:00:00Z",
    "ipv4": "timestamp:28 node:24 sequence:11 tick:1s epoch:2025-01-01T00:00:00Z",
    "game": "timestamp:31 node:20 sequence:12 tick:1s epoch:2025-01-01T00:00:00Z",
    "js53": "timestamp:38 node:5 sequence:10 tick:10ms epoch:2025-01-01T00:00:00Z",
}
_FIELDS = {"timestamp", "node", "backend", "sequence"}
_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000}
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The last time of timestamptz, in microseconds since 1970, which is later than a datetime can hold.
_LAST_TIME, _LAST_TIME_MICROS = "+294276-12-31T23:59:59.999999Z", 9_224_318_015_999_999_999


class Decoded(NamedTuple):
    """What an ID consists of. A field that the layout does not have is 0."""

    created_at: datetime
    node_id: int
    backend_id: int
    sequence: int


def decode(id: int | str, layout: str = "default") -> Decoded:
    """Reads an ID.

    The layout is the name of a preset, or the text that ``SELECT layout FROM snowflake_status`` returns.
    The time is the beginning of a tick, in UTC, to the microsecond.

    Raises ValueError if the layout or the text of the ID cannot be read, if the layout ends after the last time of
    timestamptz, which the server refuses too, if the ID is negative or has bits above the layout's fields, or if its
    epoch is earlier or its time later than a datetime can hold. Raises TypeError if the ID is a float, which cannot hold
    all digits.
    """
    words = [word.partition(":")[::2] for word in LAYOUTS.get(layout, layout).split()]
    settings = {"tick": "1ms", "epoch": "2025-01-01T00:00:00Z", **dict(words)}
    fields = [(name, int(bits)) for name, bits in words if name in _FIELDS and re.fullmatch("[1-9][0-9]?", bits)]
    tick = re.fullmatch("([1-9][0-9]*)(us|ms|s)", settings["tick"])
    is_layout = (
        tick
        and fields
        and fields[0][0] == "timestamp"
        and len(dict(words)) == len(words) == len(fields) + sum(name in ("tick", "epoch") for name, _ in words)
        and sum(bits for _, bits in fields) < 64
    )
    if not is_layout:
        raise ValueError(f"{layout!r} is not a layout")
    tick_micros = int(tick[1]) * _UNITS[tick[2]]
    epoch = datetime.fromisoformat(settings["epoch"])
    epoch = epoch.replace(tzinfo=timezone.utc) if epoch.tzinfo is None else epoch.astimezone(timezone.utc)
    if (epoch - _UNIX_EPOCH) // timedelta(microseconds=1) + (tick_micros << fields[0][1]) > _LAST_TIME_MICROS:
        raise ValueError(f"the layout {layout!r} ends after {_LAST_TIME}")
    if isinstance(id, str) and not re.fullmatch("-?[0-9]+", id):
        raise ValueError(f"{id!r} is not a number")
    left = int(id) if isinstance(id, str) else operator.index(id)
    values = {"node": 0, "backend": 0, "sequence": 0}
    for name, bits in reversed(fields):
        values[name] = left & ((1 << bits) - 1)
        left >>= bits
    if left != 0:
        raise ValueError(f"{id} is not an ID of the layout {layout!r}")
    try:
        created_at = epoch + timedelta(microseconds=values["timestamp"] * tick_micros)
    except OverflowError:
        raise ValueError(f"the time of {id} is later than a datetime can hold") from None
    return Decoded(created_at, values["node"], values["backend"], values["sequence"])
