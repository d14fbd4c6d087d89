// The mode default cannot be compared with Docker's resolver question by question. It is compared with itself: what the
// kernel answers must be what the process answers where it answers everything.

import assert from "node:assert/strict";

import { startDns11, WITHOUT_KEEPER } from "../../support/program/dns11.ts";
import type { Engine } from "../../support/engine/engine.ts";
import { answeredByKernel } from "./answered-by-kernel.ts";
import { difference, readable } from "./compare.ts";
import type { Question } from "./question.ts";
import { type QuestionResult, type ResolverClients, type Resolvers, queryBothFrom } from "./run-both.ts";

// The process answers first, and the kernel repeats.
const ROUNDS = { process: 1, auto: 2 };
// On a busy machine a reply may be late.
const TRIES = 4;

// Longer ones are not plain, and some go to servers in this mode: then TTLs count down.
const OCTETS_MAX = 120;
// More repeat the same names from other containers.
const QUESTIONS_MAX = 800;

interface Asked {
  readonly results: ReadonlyMap<Question, QuestionResult>;
  readonly byKernel: number;
}

interface Compared {
  readonly questions: number;
  readonly byKernel: number;
  readonly differences: readonly string[];
}

// `resolvers` are those of dns11 only.
export async function compareWithKernel(
  engine: Engine,
  clients: ResolverClients,
  resolvers: Resolvers,
  all: readonly Question[],
): Promise<Compared> {
  const questions = plainOnes(all);
  const asked = async (answers: "process" | "auto"): Promise<Asked> => {
    await using dns11 = await startDns11(engine, { env: { ...WITHOUT_KEEPER, DNS11_ANSWERS: answers } });
    await dns11.waitForKernel();
    const results = new Map<Question, QuestionResult>();
    let left = questions;
    for (let round = 1; round < ROUNDS[answers] + TRIES && left.length > 0; round++) {
      for (const result of await queryBothFrom(clients, resolvers, left, 0)) results.set(result.question, result);
      if (round >= ROUNDS[answers]) left = left.filter((question) => isLate(results.get(question)));
    }
    return { results, byKernel: await answeredByKernel(dns11) };
  };
  const byProcess = await asked("process");
  const byKernel = await asked("auto");
  assert.equal(byProcess.byKernel, 0);
  const differences = questions.flatMap((question) => {
    const [one, other] = [byProcess.results.get(question), byKernel.results.get(question)];
    if (one === undefined || other === undefined) throw new Error(`"${question.label}" was not asked`);
    return [
      [one.docker, other.docker],
      [one.ours, other.ours],
    ].flatMap(([process = assert.fail(), kernel = assert.fail()]) => {
      const what = difference({ ...process, elapsedMs: 0 }, { ...kernel, elapsedMs: 0 }, "octets");
      if (what === undefined) return [];
      return [
        `${question.label} (${question.from}): ${what}\n  process: ${readable(process)}\n  kernel:  ${readable(kernel)}`,
      ];
    });
  });
  return { questions: questions.length, byKernel: byKernel.byKernel, differences };
}

// Each once, and so many that all containers and kinds of names are among them.
function plainOnes(all: readonly Question[]): Question[] {
  const plain = all.filter(({ messages }) => messages.every(({ length }) => length <= OCTETS_MAX));
  const once = new Map(
    plain.map((one) => [`${one.from} ${one.messages.map((m) => m.toString("hex", 2)).join()}`, one]),
  );
  const step = Math.max(1, once.size / QUESTIONS_MAX);
  return [...once.values()].filter((_, index) => Math.floor(index / step) !== Math.floor((index - 1) / step));
}

function isLate(result: QuestionResult | undefined): boolean {
  return result === undefined || result.docker.ended === "by time" || result.ours.ended === "by time";
}
