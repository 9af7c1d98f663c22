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
    const { createdAt } = decode(0n, `timestamp:59 sequence:1 tick:10us epoch:${epoch}`);
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
