// Opens docs/decode.html as a file in a headless Chromium, enters IDs and times, and writes what it shows into a directory.
// It reads `inputs` (layout, ID) and `range-inputs` (layout, two times) there.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { toText } from "../../javascript/snowflake-decode.js";

const out = process.argv[2];
const page = pathToFileURL(new URL("../../../docs/decode.html", import.meta.url).pathname).href;
const lines = (name) => readFileSync(join(out, name), "utf8").trimEnd().split("\n").map((line) => line.split("\t"));
const check = (isOk, what) => appendFileSync(join(out, "checks"), `${isOk ? "ok" : "failed"}\t${what}\n`);

// Chromium's sandbox does not work for root, and in containers. The flooding protection drops changes of the address when
// there are many.
const options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-ipc-flooding-protection"];
const chromium = spawn("chromium", [...options, "--remote-debugging-pipe", `--user-data-dir=${join(out, "profile")}`], {
  stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
});
const [, , , toBrowser, fromBrowser] = chromium.stdio;
const answers = new Map(), requests = [], errors = [];
let unread = "", number = 0, sessionId;
fromBrowser.setEncoding("utf8").on("data", (data) => {
  const messages = (unread + data).split("\0");
  unread = messages.pop();
  for (const { id, method, params, result, error } of messages.map((message) => JSON.parse(message))) {
    if (method === "Network.requestWillBeSent") requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") errors.push(JSON.stringify(params));
    if (error) answers.get(id)?.reject(new Error(error.message));
    else answers.get(id)?.resolve(result);
  }
});
const call = (method, params = {}) => new Promise((resolve, reject) => {
  answers.set(++number, { resolve, reject });
  toBrowser.write(`${JSON.stringify({ id: number, method, params, sessionId })}\0`);
});
const evaluate = async (expression) => {
  const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
  return result.value;
};
const press = async (key) => {
  for (const type of ["keyDown", "keyUp"]) {
    await call("Input.dispatchKeyEvent", { type, key, code: key, windowsVirtualKeyCode: 9 });
  }
};
const rendered = () => new Promise((resolve) => setTimeout(resolve, 400));

/** Enters what a link contains, and returns what the page then shows. */
const shown = (link) => evaluate(`(async () => {
  const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
  location.hash = ${JSON.stringify(new URLSearchParams({ ...link, n: ++number }).toString())};
  await changed;
  const text = (id) => document.getElementById(id).textContent;
  return {
    isRead: !document.getElementById("read").hidden,
    fields: Object.fromEntries([...document.querySelectorAll("#fields tr")].map(({ cells }) =>
      [cells[0].textContent.split(":")[0], cells[1].textContent])),
    bits: [...document.querySelectorAll("#fields .bits")].map((bits) => bits.textContent).join(""),
    strip: text("strip"), time: document.getElementById("utc").dateTime, local: text("local"),
    decimal: text("decimal"), base32: text("base32"), base62: text("base62"),
    problem: text("id-status") + text("layout-status") + text("range-status"),
    sql: document.getElementById("range").hidden ? "" : document.getElementById("sql").value,
    layout: document.getElementById("layout").value, preset: document.getElementById("preset").value,
  };
})()`);

try {
  const { targetId } = await call("Target.createTarget", { url: "about:blank" });
  ({ sessionId } = await call("Target.attachToTarget", { targetId, flatten: true }));
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await call(`${domain}.enable`);
  await call("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await call("Emulation.setTimezoneOverride", { timezoneId: "Europe/Berlin" });
  await call("Page.navigate", { url: page });
  await rendered();

  const inputs = lines("inputs");
  const decoded = [], texts = [];
  let bits = 0;
  for (const [layout, id] of inputs) {
    const { isRead, fields, bits: drawn, strip, time, decimal, problem } = await shown({ id, layout });
    if (!isRead) throw new Error(`${layout} ${id}: ${problem}`);
    if (BigInt(`0b${drawn}`) === BigInt(id) && BigInt(`0b${strip}`) === BigInt(id) && strip.length === 64) bits++;
    decoded.push([layout, decimal, time.replace(/^\+0+/, ""), fields.node ?? 0, fields.backend ?? 0, fields.sequence].join("\t"));
  }
  check(bits === inputs.length, `${bits} of ${inputs.length} drawings have the bits of the ID`);
  // The published IDs are the last ones.
  for (const [layout, id] of inputs.slice(-25)) {
    for (const encoding of ["base32", "base62"]) {
      const seen = await shown({ id: toText(id, encoding), form: encoding, layout });
      if (seen.decimal !== id) throw new Error(`${id} in ${encoding}: ${seen.problem}`);
      texts.push([encoding, id, seen[encoding]].join("\t"));
    }
  }
  const ranges = [];
  for (const [layout, since, until] of lines("range-inputs")) {
    const { sql, problem } = await shown({ layout, since, until });
    const [, first, sign, last] = /^WHERE id >= (\d+) AND id (<=?) (\d+)$/.exec(sql) ?? [];
    if (!first) throw new Error(`${layout} ${since} ${until}: ${sql} ${problem}`);
    ranges.push([layout, since, until, first, sign === "<" ? last : BigInt(last) + 1n].join("\t"));
  }
  for (const [name, rows] of Object.entries({ decoded, texts, ranges })) writeFileSync(join(out, name), `${rows.join("\n")}\n`);

  const example = await shown({ id: "06xh8zwt42goo" });
  const isExample = example.decimal === "249431905924104192" && example.local === "2026-11-20 08:13:20.593+01:00 (Europe/Berlin)";
  check(isExample, "base32 is recognized, and the time here is shown");
  const preset = await shown({ id: "1", layout: "timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z" });
  check(preset.preset === "tsid", "the text of a preset selects it");
  const wholeDay = await shown({ since: "2026-11-20", until: "2026-11-21T00:00:00+01" });
  const inUtc = await shown({ since: "2026-11-19 23:00Z", until: "2026-11-20 23:00:00 UTC" });
  check(wholeDay.sql !== "" && wholeDay.sql === inUtc.sql, "a time without an offset is a time here");
  for (const link of [{ id: "-1" }, { id: "9223372036854775808" }, { id: "12ab" }, { id: "zzzzzzzzzzz" }, { id: "1", layout: "nonsense" },
    { since: "yesterday" }, { since: "2026-11-20", until: "2026-11-20" }, { since: "2200-01-01" }]) {
    const { isRead, sql, problem } = await shown(link);
    check(!isRead && sql === "" && problem !== "", `${JSON.stringify(link)}: ${problem}`);
  }

  // By keyboard alone, from the beginning of the page.
  await call("Page.navigate", { url: "about:blank" });
  await call("Page.navigate", { url: page });
  await rendered();
  check((await evaluate("document.activeElement.id")) === "id", "the ID can be typed at once");
  await call("Input.insertText", { text: "0IQOqa0An0C" });
  await rendered();
  const order = [];
  for (let n = 0; n < 3; n++) {
    await press("Tab");
    order.push(await evaluate("document.activeElement.id"));
  }
  check(order.join() === "form,since,until", `Tab moves to ${order.join(", ")}`);
  await call("Input.insertText", { text: "2026-11-20 09:00Z" });
  await rendered();
  await press("Tab");
  check((await evaluate("document.activeElement.id")) === "sql", "Tab moves to the SQL");
  const typed = await evaluate(`[location.hash, ...["id-status", "sql"].map((id) => {
    const { value, textContent } = document.getElementById(id);
    return value ?? textContent;
  })]`);
  check(typed[0] === "#id=0IQOqa0An0C&until=2026-11-20+09%3A00Z", `a link to it: ${typed[0]}`);
  check(typed[1].startsWith("2026-11-20 07:13:20.593+00, node 1, backend 4, sequence 0."), `the typed ID is read: ${typed[1]}`);
  check(typed[2] === "WHERE id < 249458746982400000", `the typed time has a range: ${typed[2]}`);
  const { nodes } = await call("Accessibility.getFullAXTree");
  const controls = nodes.filter(({ ignored, role }) => !ignored && /^(textbox|combobox|button|link)$/.test(role?.value));
  check(controls.length >= 9 && controls.every(({ name }) => name?.value), `${controls.length} controls have names for screen readers`);
  const announcing = await evaluate(`document.querySelectorAll("[role=status]").length`);
  check(announcing === 4, "results and errors are announced");
  for (const width of [320, 1280]) {
    await call("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: width < 600 });
    check(await evaluate("document.documentElement.scrollWidth <= innerWidth"), `nothing is cut off at a width of ${width} pixels`);
  }
  const others = requests.filter((url) => !/^(file|data|about):/.test(url));
  check(others.length === 0, `${others.length} requests left the page`);
  check(errors.length === 0, `${errors.length} errors in the page${errors.map((error) => ` ${error}`).join("")}`);
} finally {
  const ended = once(chromium, "exit");
  chromium.kill();
  await ended;
}
