import assert from "node:assert/strict";
import test from "node:test";
import { decode } from "../../javascript/snowflake-decode.js";

test("an ID is a string, a BigInt or a small number", () => {
  const wanted = { createdAt: new Date("2026-11-20T07:13:20.593Z"), nodeId: 1, backendId: 4, sequence: 0 };
  assert.deepEqual(decode("249431905924104192"), wanted);
  assert.deepEqual(decode(249431905924104192n), wanted);
  assert.equal(decode(5).sequence, 5);
});

test("epochs with and without an offset are read as UTC", () => {
  for (const epoch of ["2025-01-01T01:00:00+01:00", "2025-01-01T00:00:00", "2025-01-01"]) {
    const { createdAt } = decode(0n, `timestamp:62 sequence:1 tick:10us epoch:${epoch}`);
    assert.equal(createdAt.toISOString(), "2025-01-01T00:00:00.000Z");
  }
});

test("what is no number is refused", () => {
  for (const id of ["", " ", "0x10", "1n", false, [], {}, null, undefined]) assert.throws(() => decode(id), SyntaxError);
});

test("what is no layout is refused", () => {
  for (const layout of ["", "timestamp:41 nod:6 sequence:12", "timestamp sequence:12", "sequence:12 timestamp:41", "timestamp:41 tick:1h",
    "timestamp:41 timestamp:41", "timestamp:41 node:10 node:2", "timestamp:64", "timestamp:41 tick:0ms"]) {
    assert.throws(() => decode("1", layout), SyntaxError);
  }
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
