import assert from "node:assert/strict";
import test from "node:test";
import { decode, fromText, maxIdBefore, microsecondsOf, minId, parseLayout, toText } from "../../javascript/snowflake-decode.js";

test("an ID is a string, a BigInt or a small number", () => {
  const wanted = { createdAt: new Date("2026-11-20T07:13:20.593Z"), nodeId: 1, backendId: 4, sequence: 0 };
  assert.deepEqual(decode("249431905924104192"), wanted);
  assert.deepEqual(decode(249431905924104192n), wanted);
  assert.equal(decode(5).sequence, 5);
});

test("epochs with and without an offset are read as UTC", () => {
  for (const epoch of ["2025-01-01T01:00:00+01:00", "2025-01-01T00:00:00", "2025-01-01"]) {
    const { createdAt } = decode(0n, `timestamp:59 sequence:1 tick:10us epoch:${epoch}`);
    assert.equal(createdAt.toISOString(), "2025-01-01T00:00:00.000Z");
  }
});

test("what is no number is refused", () => {
  for (const id of ["", " ", "0x10", "1n", false, [], {}, null, undefined]) assert.throws(() => decode(id), SyntaxError);
});

test("what is no layout is refused", () => {
  for (const layout of ["", "timestamp:41 nod:6 sequence:12", "timestamp sequence:12", "sequence:12 timestamp:41", "timestamp:41 tick:1h",
    "timestamp:41 timestamp:41", "timestamp:41 node:10 node:2", "timestamp:64", "timestamp:41 tick:0ms",
    "timestamp:41", "timestamp:20 node:32 sequence:5", "timestamp:41 backend:13 sequence:5", "timestamp:41 sequence:12 tick:2s"]) {
    assert.throws(() => decode("1", layout), SyntaxError);
  }
});

test("a layout that the server refuses because of its first or last time is refused", () => {
  for (const layout of ["timestamp:44 sequence:19 tick:1s epoch:1970-01-01", "timestamp:54 sequence:9", "timestamp:62 sequence:1 tick:2us",
    "timestamp:44 sequence:19 tick:1s epoch:-004713-11-24"]) {
    assert.throws(() => decode("1", layout), { name: "SyntaxError", message: /ends after \+294276-12-31T23:59:59.999999Z$/ });
  }
  for (const epoch of ["-004713-11-23", "-004713-11-23T23:59:59.999999Z", "-004713-11-24T00:00:00+01:00"]) {
    const refused = { name: "SyntaxError", message: /begins before -004713-11-24T00:00:00Z$/ };
    assert.throws(() => decode("1", `timestamp:41 sequence:12 epoch:${epoch}`), refused);
  }
  for (const layout of ["timestamp:43 sequence:19 tick:1s epoch:-004713-11-24", "timestamp:43 sequence:19 tick:1s epoch:9999-12-30",
    "timestamp:53 sequence:9", "timestamp:62 sequence:1 tick:2us epoch:1970-01-01"]) {
    assert.equal(decode("1", layout).sequence, 1);
  }
});

test("a time that a Date cannot hold is refused", () => {
  assert.throws(() => decode((1n << 62n) - 1n, "timestamp:43 sequence:19 tick:1s epoch:1970-01-01"), RangeError);
});

test("what is no ID is refused", () => {
  assert.throws(() => decode(249431905924104193), RangeError);
  assert.throws(() => decode("-1"), RangeError);
  assert.throws(() => decode(1n << 63n), RangeError);
  assert.throws(() => decode(2 ** 53 - 1 + 1, "js53"), RangeError);
  assert.throws(() => decode("abc"), SyntaxError);
  assert.throws(() => decode("1", "nonsense:1"), SyntaxError);
  assert.throws(() => decode("1", "constructor"), SyntaxError);
});

test("a layout's fields go from the most significant bit down", () => {
  assert.deepEqual(parseLayout(" timestamp:39 sequence:8\tnode:16 tick:10ms epoch:2014-09-01 "), {
    fields: [
      { name: "timestamp", bits: 39, shift: 24 },
      { name: "sequence", bits: 8, shift: 16 },
      { name: "node", bits: 16, shift: 0 },
    ],
    tick: 10_000n,
    epoch: 1_409_529_600_000_000n,
  });
  assert.equal(parseLayout("timestamp:41 sequence:12 epoch:1969-12-31T23:59:59.999999Z").epoch, -1n);
});

test("a range of time has the bounds that the server has", () => {
  assert.equal(minId(new Date("2026-11-20T08:00:00Z")), 249443647488000000n);
  assert.equal(maxIdBefore(new Date("2026-11-20T09:00:00Z")), 249458746982399999n);
  const epoch = microsecondsOf("2025-01-01T00:00:00Z");
  // Within a tick: its own ID is before that time.
  assert.equal(minId(epoch + 1n), 1n << 22n);
  assert.equal(maxIdBefore(epoch + 1n), (1n << 22n) - 1n);
  for (const at of [epoch, epoch - 1n, epoch - 1_000n, 0n]) {
    assert.equal(minId(at), 0n);
    assert.equal(maxIdBefore(at), -1n);
  }
  const layout = "timestamp:2 sequence:3 tick:10ms";
  assert.equal(minId(epoch + 30_000n, layout), 24n);
  assert.equal(maxIdBefore(epoch + 30_001n, layout), 31n);
  assert.equal(maxIdBefore(1n << 62n, layout), 31n);
  assert.throws(() => minId(epoch + 30_001n, layout), RangeError);
});

test("a time has microseconds", () => {
  assert.equal(microsecondsOf("1970-01-01T00:00:00.000123Z"), 123n);
  assert.equal(microsecondsOf("1970-01-01T01:00:01.5+01:00"), 1_500_000n);
  for (const text of ["", "yesterday", "1970-01-01T00:00:00.1234567Z"]) assert.equal(microsecondsOf(text), undefined);
});

test("texts are those of the server", () => {
  const id = 249431905924104192n;
  assert.equal(toText(id), "06XH8ZWT42G00");
  assert.equal(toText(String(id), "base62"), "0IQOqa0An0C");
  assert.equal(fromText("o6xh8zwt42goO"), id);
  assert.equal(fromText("0IQOqa0An0C", "base62"), id);
  for (const encoding of ["base32", "base62"]) {
    for (const each of [0n, (1n << 63n) - 1n]) assert.equal(fromText(toText(each, encoding), encoding), each);
  }
});

test("what is no text of an ID is refused", () => {
  for (const text of ["", "06XH8ZWT42G0", " 06XH8ZWT42G00", "06XH8ZWT42G0U", "06XH8ZWT42G0-", "06XH8ZWT42G0\u0131"]) {
    assert.throws(() => fromText(text), SyntaxError);
  }
  assert.throws(() => fromText("0IQOqa0An0-", "base62"), SyntaxError);
  assert.throws(() => fromText("80000000000000"), SyntaxError);
  assert.throws(() => fromText("8000000000000"), RangeError);
  assert.throws(() => fromText("zzzzzzzzzzz", "base62"), RangeError);
  assert.throws(() => fromText("0", "base64"), RangeError);
  assert.throws(() => toText(-1n), RangeError);
  assert.throws(() => toText(1n << 63n), RangeError);
  assert.throws(() => toText(Number(249431905924104193n)), RangeError);
  for (const none of ["", "0x10", true, 0.5]) assert.throws(() => toText(none), none === 0.5 ? RangeError : SyntaxError);
});
