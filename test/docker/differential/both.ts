// Owns putting every question to both resolvers and telling where their replies, or what they asked of the world's
// servers, differ.

import { Asker, type Outcome, type Ports } from "./asker.ts";
import { difference, isByTime, readable, readableMessage, replyDifference } from "./compare.ts";
import { type Project, get } from "./project.ts";
import { type Question, WAIT_MS } from "./question.ts";
import type { Asked } from "./world.ts";

// Of each container, by its role.
export type Resolvers = ReadonlyMap<string, { readonly docker: Ports; readonly ours: Ports }>;

export type Answered = {
  readonly question: Question;
  readonly docker: Outcome;
  readonly ours: Outcome;
  // The ids under which the world's servers were asked.
  readonly dockerId: number;
  readonly oursId: number;
};

// More would only wait for the processor, and some would wait too long. What is likely to end in silence costs no
// processor and is asked beside.
const AT_ONCE = 64;
const IDS = 0x10000;

// Each question goes to both at the same time, so that whatever slows the machine slows both.
export async function askBoth(
  project: Project,
  resolvers: Resolvers,
  questions: readonly Question[],
  firstId = 0,
): Promise<Answered[]> {
  if (firstId + questions.length * 2 > IDS)
    throw new Error(`there are not enough ids for ${questions.length} questions`);
  const roles = [...new Set(questions.map(({ from }) => from))];
  const askers = new Map(roles.map((role) => [role, new Asker(`/proc/${get(project, role).State.Pid}/ns/net`)]));
  const askOne = async ({ question, id }: { readonly question: Question; readonly id: number }): Promise<Answered> => {
    const asker = askers.get(question.from);
    const ports = resolvers.get(question.from);
    if (asker === undefined || ports === undefined) throw new Error(`nobody to ask in ${question.from}`);
    const asking = [asker.ask(question, id, ports.docker), asker.ask(question, id + 1, ports.ours)] as const;
    const [docker, ours] = await Promise.all(asking);
    return { question, dockerId: id, oursId: id + 1, docker: blank(docker, id), ours: blank(ours, id + 1) };
  };
  try {
    const all = questions.map((question, index) => ({ question, id: firstId + index * 2 }));
    const silent = all.filter(({ question }) => endsInSilence(question)).map(askOne);
    const left = all.filter(({ question }) => !endsInSilence(question));
    const answered: Answered[] = [];
    const askSome = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) answered.push(await askOne(next));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askSome));
    return [...answered, ...(await Promise.all(silent))];
  } finally {
    for (const asker of askers.values()) asker[Symbol.dispose]();
  }
}

// What is no query, or waits for somebody who says nothing.
function endsInSilence({ messages, waitMs }: Question): boolean {
  return waitMs > WAIT_MS || messages.some((message) => message.length <= 12 || (message[2] ?? 0) >= 0x80);
}

export type Difference = {
  readonly question: Question;
  readonly what: string;
  // It is one of how long they took.
  readonly isByTime: boolean;
  readonly report: string;
};

export function differences(answered: readonly Answered[], asked: ReadonlyMap<number, readonly Asked[]>): Difference[] {
  return answered.flatMap(({ question, docker, ours, dockerId, oursId }) => {
    const byDocker = asked.get(dockerId) ?? [];
    const byUs = asked.get(oursId) ?? [];
    const what =
      difference(docker, ours, byDocker.length > 0 ? "records" : "octets") ?? askedDifference(question, byDocker, byUs);
    if (what === undefined) return [];
    const { label, from, transport, messages } = question;
    const lines = [
      `${label} (${transport}, from ${from}): ${what}`,
      ...messages.slice(0, 3).map((message) => `  question ${message.subarray(0, 200).toString("hex")}`),
      `  Docker: ${readable(docker)}`,
      `  dns11:  ${readable(ours)}`,
      ...(what.startsWith("upstream") ? [...askedLines("Docker", byDocker), ...askedLines("dns11 ", byUs)] : []),
    ];
    return [{ question, what, isByTime: isByTime(what, docker, ours), report: lines.join("\n") }];
  });
}

function askedDifference({ isOdd }: Question, docker: readonly Asked[], ours: readonly Asked[]): string | undefined {
  if (docker.length !== ours.length) return "upstream gets different numbers of questions";
  const theirs = docker.toSorted(byOctets);
  for (const [index, own] of ours.toSorted(byOctets).entries()) {
    const other = theirs[index];
    if (other === undefined) break;
    if (other.server !== own.server || other.transport !== own.transport) return "upstream asks other servers";
    const measure = isOdd === true ? "question" : "records";
    const found = replyDifference(octetsOf(other.message), octetsOf(own.message), measure);
    if (found !== undefined) return `upstream: ${found}`;
  }
  return undefined;
}

// Several questions of one connection may be in flight at once.
function byOctets(a: Asked, b: Asked): number {
  return a.server - b.server || (a.message.slice(4) < b.message.slice(4) ? -1 : 1);
}

function askedLines(who: string, asked: readonly Asked[]): string[] {
  return asked.map(({ server, transport, message }) => {
    return `  ${who} asked server ${server + 1} by ${transport}: ${readableMessage(octetsOf(message))}`;
  });
}

function octetsOf(message: string): Buffer {
  return Buffer.from(`0000${message.slice(4)}`, "hex");
}

// The id that was asked under becomes 0000, any other one ffff.
function blank(outcome: Outcome, id: number): Outcome {
  const expected = id.toString(16).padStart(4, "0");
  const replies = outcome.replies.map((reply) => (reply.startsWith(expected) ? "0000" : "ffff") + reply.slice(4));
  return { ...outcome, replies };
}
