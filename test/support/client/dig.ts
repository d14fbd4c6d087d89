/**
 * Queries sent with dig from inside a namespace, and the parsed reply. dig is independent of dns11: they share no code.
 */
import { keepReply } from "../rig/evidence.ts";
import type { NetworkContext } from "../rig/netns.ts";

interface DigRecord {
  readonly name: string;
  readonly ttl: number;
  readonly class: string;
  readonly type: string;
  readonly data: string;
}

type DigQuestion = { readonly name: string; readonly class: string; readonly type: string };

type DigEdns = { readonly version: number; readonly flags: readonly string[]; readonly udp: number };

export interface DigReply {
  /** "NOERROR", "NXDOMAIN" ...; empty without a reply. */
  readonly status: string;
  readonly flags: ReadonlySet<string>;
  readonly id: number | undefined;
  readonly question: DigQuestion | undefined;
  readonly answer: readonly DigRecord[];
  readonly authority: readonly DigRecord[];
  readonly additional: readonly DigRecord[];
  readonly edns: DigEdns | undefined;
  /** Size of the reply in octets. */
  readonly size: number | undefined;
  readonly tcp: boolean;
  readonly timedOut: boolean;
  readonly raw: string;
}

/** One packet, so that a server's count of queries is right; the time is for a busy machine. */
const DEFAULTS = ["+tries=1", "+time=30"];

/** Queries 127.0.0.11, unless the arguments name another server. */
export async function dig(context: NetworkContext, ...args: string[]): Promise<DigReply> {
  const server = args.some((arg) => arg.startsWith("@")) ? [] : ["@127.0.0.11"];
  // -r: ignore the ~/.digrc of the person who runs the tests.
  const { stdout, stderr } = await context.enter("dig", ["-r", ...server, ...DEFAULTS, ...args]);
  return parseDig(stdout + stderr);
}

/** The replies to several queries by one process, in order; each needs a name, which its options follow. */
export async function digMany(
  context: NetworkContext,
  server: string,
  queries: readonly (readonly string[])[],
): Promise<readonly DigReply[]> {
  // Without the line of the command, which dig cuts off.
  const args = ["-r", "+nocmd", `@${server}`, ...DEFAULTS, ...queries.flat()];
  const { stdout, stderr } = await context.enter("dig", args);
  const replies = repliesIn(stdout);
  if (replies.length !== queries.length) {
    const errors = stdout.split("\n").filter((line) => /^;; .*(?:error|no servers|failed|timed out)/.test(line));
    throw new Error(`${replies.length} of ${queries.length} replies: ${errors.join("; ")}${stderr}`);
  }
  return replies.map(parseDig);
}

/** The replies to one query by UDP and by TCP, from one process; undefined without a reply. */
export async function digByBoth(
  context: NetworkContext,
  server: string,
  name: string,
  ...options: readonly string[]
): Promise<readonly [DigReply | undefined, DigReply | undefined]> {
  const args = ["-r", "+nocmd", `@${server}`, ...DEFAULTS, ...options, name, "+notcp", name, "+tcp"];
  const { stdout } = await context.enter("dig", args);
  const replies = repliesIn(stdout).map(parseDig);
  return [replies.find(({ tcp }) => !tcp), replies.find(({ tcp }) => tcp)];
}

function repliesIn(stdout: string): string[] {
  return stdout.split(/^(?=;; Got answer:)/m).filter((text) => text.startsWith(";; Got answer:"));
}

/** Data of the answer records, such as addresses or texts. */
export function dataOf(reply: DigReply): string[] {
  return reply.answer.map(({ data }) => data);
}

function parseDig(raw: string): DigReply {
  keepReply(raw);
  const header = /^;; ->>HEADER<<- opcode: \S+, status: (\S+), id: (\d+)$/m.exec(raw);
  const size = /^;; MSG SIZE {2}rcvd: (\d+)/m.exec(raw)?.[1];
  return {
    status: header?.[1] ?? "",
    flags: new Set(wordsOf(/^;; flags: ?([^;]*);/m.exec(raw)?.[1])),
    id: header === null ? undefined : Number(header[2]),
    question: questionOf(raw),
    answer: recordsOf(raw, "ANSWER"),
    authority: recordsOf(raw, "AUTHORITY"),
    additional: recordsOf(raw, "ADDITIONAL"),
    edns: ednsOf(raw),
    size: size === undefined ? undefined : Number(size),
    tcp: /^;; SERVER: .*\(TCP\)$/m.test(raw),
    timedOut: /timed out/.test(raw) && header === null,
    raw,
  };
}

function questionOf(raw: string): DigQuestion | undefined {
  const match = /^;; QUESTION SECTION:\n;(\S+)\s+(\S+)\s+(\S+)$/m.exec(raw);
  return match === null ? undefined : { name: match[1] ?? "", class: match[2] ?? "", type: match[3] ?? "" };
}

function recordsOf(raw: string, section: string): DigRecord[] {
  const lines = new RegExp(`^;; ${section} SECTION:\\n((?:[^;\\n].*\\n)*)`, "m").exec(raw)?.[1] ?? "";
  const records = lines.matchAll(/^(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s*(.*)$/gm);
  return [...records].map(([, name = "", ttl = "", recordClass = "", type = "", data = ""]) => ({
    name,
    ttl: Number(ttl),
    class: recordClass,
    type,
    data,
  }));
}

function ednsOf(raw: string): DigEdns | undefined {
  const match = /^; EDNS: version: (\d+), flags:([^;]*); udp: (\d+)/m.exec(raw);
  if (match === null) return undefined;
  return { version: Number(match[1]), flags: wordsOf(match[2]), udp: Number(match[3]) };
}

function wordsOf(text = ""): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
