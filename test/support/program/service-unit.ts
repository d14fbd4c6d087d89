/** Parser of a systemd unit: its values by key, and the system calls that its filters allow on this machine. */
import { readFileSync } from "node:fs";

import { check } from "./command.ts";

export class ServiceUnit {
  readonly #lines: readonly (readonly [string, string])[];

  constructor(path: string) {
    this.#lines = readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => /^[A-Za-z]+=/.test(line))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  }

  /** All values of a key, split into words. */
  words(key: string): string[] {
    return this.#lines
      .filter(([name]) => name === key)
      .flatMap(([, value]) => value.split(/\s+/))
      .filter((word) => word !== "");
  }

  value(key: string): string | undefined {
    return this.#lines.findLast(([name]) => name === key)?.[1];
  }

  get keys(): string[] {
    return this.#lines.map(([key]) => key);
  }

  /** Names of the system calls that SystemCallFilter allows. */
  async allowedCalls(): Promise<ReadonlySet<string>> {
    const allowed = new Set<string>();
    for (const word of this.words("SystemCallFilter")) await expand(word, allowed);
    return allowed;
  }
}

async function expand(word: string, into: Set<string>): Promise<void> {
  if (!word.startsWith("@")) {
    into.add(word);
    return;
  }
  const text = await check("systemd-analyze", ["syscall-filter", word]);
  const names = text
    .split("\n")
    .slice(1)
    .map((line) => line.trim());
  for (const name of names.filter((each) => each !== "" && !each.startsWith("#"))) await expand(name, into);
}
