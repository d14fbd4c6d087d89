// Module loaded into dns11 by stepped-clock.ts: shifts its wall clock by the offset in a file, read at the start and on
// SIGWINCH.

import { readFileSync } from "node:fs";

const file = process.env["DNS11_CHAOS_CLOCK"] ?? "";
const RealDate = Date;
let offsetMs = 0;

function read(): void {
  try {
    offsetMs = Number(readFileSync(file, "utf8"));
  } catch {
    // If there is no free descriptor to read it, the clock stays as it is.
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
read();
process.on("SIGWINCH", read);
