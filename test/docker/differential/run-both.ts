// Sends every question to both resolvers and reports where their replies, or the queries that they sent upstream, differ.

import { ResolverClient, type Outcome, type Ports } from "./client.ts";
import { difference, isByTime, readable, readableMessage, replyDifference } from "./compare.ts";
import { type Project, get } from "./project.ts";
import { type Question, WAIT_MS } from "./question.ts";
import type { ReceivedMessage } from "./upstreams.ts";

// Per container, by its role.
export type Resolvers = ReadonlyMap<string, { readonly docker: Ports; readonly ours: Ports }>;

export type QuestionResult = {
  readonly question: Question;
  readonly docker: Outcome;
  readonly ours: Outcome;
  // The ids of the queries, by which upstream queries are assigned to a resolver.
  readonly dockerId: number;
  readonly oursId: number;
};

// More would only wait for the processor, and some would time out. Questions that are likely to end without a reply cost
// no processor time and are not limited.
const AT_ONCE = 64;
const IDS = 0x10000;

// The client in each container, which is started once: a start takes more processor time than many questions.
export class ResolverClients implements Disposable {
  readonly #project: Project;
  readonly #clients = new Map<string, ResolverClient>();

  constructor(project: Project) {
    this.#project = project;
  }

  of(role: string): ResolverClient {
    const client = this.#clients.get(role) ?? new ResolverClient(`/proc/${get(this.#project, role).State.Pid}/ns/net`);
    this.#clients.set(role, client);
    return client;
  }

  [Symbol.dispose](): void {
    for (const client of this.#clients.values()) client[Symbol.dispose]();
  }
}

// Each question goes to both at the same time, so that a busy machine slows both.
export async function queryBoth(
  project: Project,
  resolvers: Resolvers,
  questions: readonly Question[],
  firstId = 0,
): Promise<QuestionResult[]> {
  using clients = new ResolverClients(project);
  return await queryBothFrom(clients, resolvers, questions, firstId);
}

export async function queryBothFrom(
  clients: ResolverClients,
  resolvers: Resolvers,
  questions: readonly Question[],
  firstId: number,
): Promise<QuestionResult[]> {
  if (firstId + questions.length * 2 > IDS) throw new Error(`not enough ids for ${questions.length} questions`);
  const all = questions.map((question, index) => ({ question, id: firstId + index * 2 }));
  const queryOne = async ({ question, id }: { readonly question: Question; readonly id: number }) => {
    const { docker, ours } = resolversIn(resolvers, question);
    const client = clients.of(question.from);
    const outcomes = [client.query(question, id, docker), client.query(question, id + 1, ours)] as const;
    const [theirs, own] = await Promise.all(outcomes);
    return { question, dockerId: id, oursId: id + 1, docker: blank(theirs, id), ours: blank(own, id + 1) };
  };
  const silent = all.filter(({ question }) => endsInSilence(question)).map(queryOne);
  const answered = await fewAtOnce(
    all.filter(({ question }) => !endsInSilence(question)),
    queryOne,
  );
  return [...answered, ...(await Promise.all(silent))];
}

// The same questions to ours once more, beside what Docker has answered.
export async function repeatOurs(
  clients: ResolverClients,
  resolvers: Resolvers,
  results: readonly QuestionResult[],
  firstId: number,
): Promise<QuestionResult[]> {
  if (firstId + results.length > IDS) throw new Error(`not enough ids for ${results.length} questions`);
  const all = results.map((result, index) => ({ result, id: firstId + index }));
  return await fewAtOnce(all, async ({ result, id }) => {
    const { question } = result;
    const outcome = await clients.of(question.from).query(question, id, resolversIn(resolvers, question).ours);
    return { ...result, oursId: id, ours: blank(outcome, id) };
  });
}

function resolversIn(resolvers: Resolvers, { from }: Question): { readonly docker: Ports; readonly ours: Ports } {
  const ports = resolvers.get(from);
  if (ports === undefined) throw new Error(`no resolver in ${from}`);
  return ports;
}

async function fewAtOnce<T, R>(all: readonly T[], act: (each: T) => Promise<R>): Promise<R[]> {
  const left = [...all];
  const done: R[] = [];
  const next = async (): Promise<void> => {
    for (let each = left.shift(); each !== undefined; each = left.shift()) done.push(await act(each));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return done;
}

// Messages that are not queries, and questions to servers that do not reply.
function endsInSilence({ messages, waitMs }: Question): boolean {
  return waitMs > WAIT_MS || messages.some((message) => message.length <= 12 || (message[2] ?? 0) >= 0x80);
}

export type Difference = {
  readonly question: Question;
  readonly what: string;
  // The difference is in timing, so it may be caused by a busy machine.
  readonly isByTime: boolean;
  readonly report: string;
};

export function differences(
  results: readonly QuestionResult[],
  received: ReadonlyMap<number, readonly ReceivedMessage[]>,
): Difference[] {
  return results.flatMap(({ question, docker, ours, dockerId, oursId }) => {
    const byDocker = received.get(dockerId) ?? [];
    const byUs = received.get(oursId) ?? [];
    const what =
      difference(docker, ours, byDocker.length > 0 ? "records" : "octets") ??
      upstreamDifference(question, byDocker, byUs);
    if (what === undefined) return [];
    const { label, from, transport, messages } = question;
    const lines = [
      `${label} (${transport}, from ${from}): ${what}`,
      ...messages.slice(0, 3).map((message) => `  question ${message.subarray(0, 200).toString("hex")}`),
      `  Docker: ${readable(docker)}`,
      `  dns11:  ${readable(ours)}`,
      ...(what.startsWith("upstream") ? [...receivedLines("Docker", byDocker), ...receivedLines("dns11 ", byUs)] : []),
    ];
    return [{ question, what, isByTime: isByTime(what, docker, ours), report: lines.join("\n") }];
  });
}

function upstreamDifference(
  { isOdd }: Question,
  docker: readonly ReceivedMessage[],
  ours: readonly ReceivedMessage[],
): string | undefined {
  if (docker.length !== ours.length) return "upstream gets different numbers of queries";
  const theirs = docker.toSorted(byOctets);
  for (const [index, own] of ours.toSorted(byOctets).entries()) {
    const other = theirs[index];
    if (other === undefined) break;
    if (other.server !== own.server || other.transport !== own.transport) return "upstream servers differ";
    const measure = isOdd === true ? "question" : "records";
    const found = replyDifference(octetsOf(other.message), octetsOf(own.message), measure);
    if (found !== undefined) return `upstream: ${found}`;
  }
  return undefined;
}

// Several queries of one connection may be in flight at once.
function byOctets(a: ReceivedMessage, b: ReceivedMessage): number {
  return a.server - b.server || (a.message.slice(4) < b.message.slice(4) ? -1 : 1);
}

function receivedLines(resolver: string, received: readonly ReceivedMessage[]): string[] {
  return received.map(({ server, transport, message }) => {
    return `  ${resolver} queried server ${server + 1} over ${transport}: ${readableMessage(octetsOf(message))}`;
  });
}

function octetsOf(message: string): Buffer {
  return Buffer.from(`0000${message.slice(4)}`, "hex");
}

// The id of the query becomes 0000, any other id ffff.
export function blank(outcome: Outcome, id: number): Outcome {
  const expected = id.toString(16).padStart(4, "0");
  const replies = outcome.replies.map((reply) => (reply.startsWith(expected) ? "0000" : "ffff") + reply.slice(4));
  return { ...outcome, replies };
}
