// Module loaded into dns11 by stepped-clock.ts: shifts its clocks by the offsets in a file, read at the start and on SIGWINCH.

import { readFileSync, writeFileSync } from "node:fs";

const file = process.env["DNS11_CHAOS_CLOCK"] ?? "";
const RealDate = Date;
const monotonicNow = performance.now.bind(performance);
let offsetMs = 0;
let monotonicMs = 0;

function read(): void {
  try {
    const text = readFileSync(file, "utf8");
    const [wall, monotonic] = text.split(" ").map(Number);
    [offsetMs, monotonicMs] = [wall ?? 0, monotonic ?? 0];
    writeFileSync(`${file}.read`, text);
  } catch {
    // If there is no free descriptor to read it, the clocks stay as they are.
  }
}

function now(): number {
  return RealDate.now() + offsetMs;
}

globalThis.Date = new Proxy(RealDate, {
  construct: (target, words: [], newTarget) =>
    Reflect.construct(target, words.length === 0 ? [now()] : words, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, key) => (key === "now" ? now : (Reflect.get(target, key) as unknown)),
});
performance.now = () => monotonicNow() + monotonicMs;
read();
process.on("SIGWINCH", read);
