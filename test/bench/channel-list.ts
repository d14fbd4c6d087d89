// The ways in which a program can tell the server of a name that its policy allows something: what it chooses for each question, and
// how much the server learns from those that arrive.
import { randomBytes, randomInt } from "node:crypto";
import { performance } from "node:perf_hooks";

import type { UpstreamQuestion } from "../support/servers/upstream-question.ts";

export interface Question {
  readonly labels: readonly Buffer[];
  readonly type?: number;
  readonly flags?: number;
  readonly udpSize?: number;
  readonly isDnssecOk?: boolean;
}

interface Channel {
  readonly what: string;
  // The policy allows the name itself, or those below it.
  readonly policy: "listed" | "below";
  // Makes the questions about a name, one after the other, without end.
  readonly questions: (base: string) => () => Question;
  // How many bits the server has of these.
  readonly bits: (arrived: readonly UpstreamQuestion[]) => number;
}

const A = 1;
const PTR = 12;
// Those that wildcards allow: A, CNAME, PTR, MX, AAAA, SRV, SVCB, HTTPS.
const TYPES = [1, 5, 12, 15, 28, 33, 64, 65];
const NAMES = 40;
const LETTERS = 60;
// A reverse name is known for each address of an answer of the server.
const ADDRESSES = 40;
// Above those with a meaning for queries.
const TYPE_FIRST = 1_000;
const TYPE_END = 0xf000;
const NEW_LABEL = 49;
const KNOWN_EVERY_MS = 340;
// At first it asks only what it will know. Docker's resolver answers until dns11 has attached.
const KNOWN_MS = 3_000;
// Octets that are different names: all but the capital letters.
const OCTETS = [...Array.from({ length: 256 }).keys()].filter((octet) => octet < 0x41 || octet > 0x5a);

function labels(name: string): Buffer[] {
  return name.split(".").map((label) => Buffer.from(label, "latin1"));
}

function pick<T>(all: readonly T[]): T {
  return all[randomInt(all.length)] as T;
}

function knownNames(base: string): Buffer[][] {
  return Array.from({ length: NAMES }, (_, index) => labels(`${"n".repeat(LETTERS)}${index}.${base}`));
}

function inRandomCase(octets: Buffer): Buffer {
  return octets.map((octet) => (octet >= 0x61 && octet <= 0x7a && randomInt(2) === 1 ? octet - 0x20 : octet)) as Buffer;
}

function lettersIn(name: string): number {
  return /[A-Z]/.test(name) ? name.replaceAll(/[^A-Za-z]/g, "").length : 0;
}

function perQuestion(choices: number): Channel["bits"] {
  return (arrived) => arrived.length * Math.log2(choices);
}

function newName(base: string): Question {
  const label = (): Buffer => Buffer.from(Array.from(randomBytes(NEW_LABEL), () => pick(OCTETS)));
  return { labels: [label(), label(), ...labels(base)], type: A };
}

const NEW_BITS = 2 * NEW_LABEL * Math.log2(OCTETS.length);
const isNew = ({ name }: UpstreamQuestion): boolean => !name.includes("nnn");

export const CHANNELS: Readonly<Record<string, Channel>> = {
  case: {
    what: "letter case of 40 known names",
    policy: "below",
    questions: (base) => {
      const names = knownNames(base);
      return () => ({ labels: pick(names).map((label) => inRandomCase(label)) });
    },
    bits: (arrived) => arrived.reduce((sum, { name }) => sum + lettersIn(name), 0),
  },
  name: {
    what: "which of 40 known names",
    policy: "below",
    questions: (base) => {
      const names = knownNames(base);
      return () => ({ labels: pick(names) });
    },
    bits: perQuestion(NAMES),
  },
  types: {
    what: "which of these, and which of 8 types",
    policy: "below",
    questions: (base) => {
      const names = knownNames(base);
      return () => ({ labels: pick(names), type: pick(TYPES) });
    },
    bits: perQuestion(NAMES * TYPES.length),
  },
  order: {
    what: "the order of these 40",
    policy: "below",
    questions: (base) => {
      let left: Buffer[][] = [];
      return () => {
        if (left.length === 0) left = knownNames(base);
        return { labels: left.splice(randomInt(left.length), 1)[0] ?? [] };
      };
    },
    bits: (arrived) =>
      (arrived.length / NAMES) * Array.from({ length: NAMES }).reduce<number>((sum, _, i) => sum + Math.log2(i + 1), 0),
  },
  exact: {
    what: "the type of a listed name",
    policy: "listed",
    questions: (base) => () => ({ labels: labels(base), type: randomInt(TYPE_FIRST, TYPE_END) }),
    bits: perQuestion(TYPE_END - TYPE_FIRST),
  },
  flags: {
    what: "flags and sizes in queries of a listed name",
    policy: "listed",
    questions: (base) => () => ({
      labels: labels(base),
      flags: pick([0x0100, 0x0000, 0x0110, 0x0120, 0x0130, 0x0140]),
      udpSize: randomInt(512, 0x10000),
      isDnssecOk: randomInt(2) === 1,
    }),
    bits: (arrived) => {
      const forms = new Set(arrived.map(({ flags, opt }) => `${flags} ${opt?.udpSize} ${opt?.dnssecOk}`));
      return arrived.length * Math.log2(Math.max(1, forms.size));
    },
  },
  reverse: {
    what: "which of 40 reverse names",
    policy: "listed",
    questions: (base) => {
      const startMs = performance.now();
      return () => {
        if (performance.now() - startMs < KNOWN_MS) return { labels: labels(base) };
        return { labels: labels(`${randomInt(ADDRESSES) + 1}.100.51.198.in-addr.arpa`), type: PTR };
      };
    },
    bits: (arrived) => perQuestion(ADDRESSES)(arrived.filter(({ type }) => type === PTR)),
  },
  new: {
    what: "new names of 100 bytes",
    policy: "below",
    questions: (base) => () => newName(base),
    bits: (arrived) => arrived.length * NEW_BITS,
  },
  all: {
    what: "new names, and all of the above",
    policy: "below",
    questions: (base) => {
      const names = knownNames(base);
      const startMs = performance.now();
      let known = 0;
      let knownMs = 0;
      // As much as is left of what it may ask beside new names: asked more often, these would be refused.
      return () => {
        const nowMs = performance.now();
        if (nowMs - startMs < KNOWN_MS) return { labels: names[known++ % NAMES] ?? [] };
        if (nowMs - knownMs < KNOWN_EVERY_MS) return newName(base);
        knownMs = nowMs;
        return { labels: pick(names), type: pick(TYPES), isDnssecOk: randomInt(2) === 1 };
      };
    },
    bits: (arrived) => {
      const fresh = arrived.filter((each) => isNew(each));
      return fresh.length * NEW_BITS + (arrived.length - fresh.length) * Math.log2(NAMES * TYPES.length * 2);
    },
  },
};

// The most that a number of moments can tell, where a server can tell so many apart in this time.
export function momentBits(count: number, moments: number): number {
  let bits = 0;
  for (let index = 0; index < count; index++) bits += Math.log2((moments - index) / (index + 1));
  return bits;
}
