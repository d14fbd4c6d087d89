// Queries of the bench as dnsperf input files, and the names in them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

// A container name that every server is configured with.
export type Host = { readonly name: string; readonly address: string };

const CACHED_NAMES = 1_000;
// More than any server answers in that time.
const NEW_NAMES_A_SECOND = 80_000;

// Zones of the upstream servers: everything below `test` exists except below `gone.test`. No query goes beyond them.
export const UPSTREAM_LINES = [
  'local-zone: "." static',
  "local-zone: test. redirect",
  'local-data: "test. 3600 A 192.0.2.1"',
  "local-zone: gone.test. static",
  'local-data: "gone.test. 3600 SOA ns.gone.test. nobody.gone.test. 1 3600 1200 604800 3600"',
];

export class Questions {
  readonly #folder: string;
  #files = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  addresses(hosts: readonly Host[]): string {
    return this.#write(hosts.map(({ name }) => `${name} A`));
  }

  // Of another type.
  typed(hosts: readonly Host[], type: string): string {
    return this.#write(hosts.map(({ name }) => `${name} ${type}`));
  }

  reverse(hosts: readonly Host[]): string {
    return this.#write(hosts.map(({ address }) => `${reverseName(address)} PTR`));
  }

  cached(): string {
    return this.#write(namesOf("cached", "test", CACHED_NAMES));
  }

  nxdomain(): string {
    return this.#write(namesOf("cached", "gone.test", CACHED_NAMES));
  }

  // Names that were not queried before, more than can be answered in that time. The file replaces the previous one.
  uncached(seconds: number): string {
    const lines = namesOf(`uncached${(this.#files += 1)}`, "test", Math.ceil(NEW_NAMES_A_SECOND * seconds));
    return this.#write(lines, "uncached");
  }

  #write(lines: readonly string[], name = `questions${(this.#files += 1)}`): string {
    const file = join(this.#folder, name);
    writeFileSync(file, `${lines.join("\n")}\n`);
    return file;
  }
}

export function reverseName(address: string): string {
  return `${address.split(".").toReversed().join(".")}.in-addr.arpa`;
}

function namesOf(word: string, domain: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${word}-${index}.${domain} A`);
}
