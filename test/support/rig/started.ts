// What takes long in tests, counted where it is started: scripts/test.mjs --table prints it for each file.

const STARTED = Symbol.for("dns11.test.started");

export function countStart(what: "engine" | "container" | "dns11" | "image" | "command"): void {
  const known = (Reflect.get(globalThis, STARTED) ?? {}) as Record<string, number>;
  known[what] = (known[what] ?? 0) + 1;
  Reflect.set(globalThis, STARTED, known);
}
