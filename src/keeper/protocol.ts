/**
 * Protocol: the messages between a keeper, the main process that it watches, and a new process: one JSON object each,
 * with the descriptors that it holds beside it. The first message of each side is `hello`; a side that sees another
 * version there sends nothing more. An unknown message ends the connection.
 */
import { LIMITS } from "../base/limits.ts";
import { type HeldNamespace, type HeldPair, type HeldTable, WHEN_ALONE } from "../base/model/held-namespace.ts";

/** Must change whenever anything below changes. */
export const PROTOCOL_VERSION = 7;

/** A link, the table that its program calls through, and those of processes that ended before theirs was there. */
export const PROGRAMS_MAX = 8;

/** The main process sends these, or a new process. */
export type ToKeeper =
  | { readonly is: "hello"; readonly version: number }
  /** Hold this under a key, instead of what the key held before; the gate stays the same unless there is one. */
  | { readonly is: "hold"; readonly key: number; readonly namespace: HeldNamespace }
  | { readonly is: "release"; readonly key: number }
  | { readonly is: "beat" }
  /** The process that wants to take over may not. */
  | { readonly is: "refuse"; readonly reason: string }
  /** The main process is paused: it reads no queries and touches no rules until it receives `back` or `gone`. */
  | { readonly is: "yield" }
  /** Nothing is to be held any more, and no new process will connect. */
  | { readonly is: "end" }
  /** A new process requests what is held. */
  | { readonly is: "take" }
  /** The new process serves, and the keeper holds what it serves with. */
  | { readonly is: "taken" };

export type FromKeeper =
  /**
   * The pids of the keeper and of the watched process; 0 where unknown. `refusing` is how many namespaces the keeper refuses by
   * itself, because no process serves any more.
   */
  | {
      readonly is: "hello";
      readonly version: number;
      readonly keeper: number;
      readonly main: number;
      readonly refusing: number;
    }
  /** Acknowledges a heartbeat. */
  | { readonly is: "alive" }
  /** A new process requests a takeover: pause, or refuse. */
  | { readonly is: "wanted"; readonly successor: number }
  /** The takeover failed: resume. */
  | { readonly is: "back" }
  /** Another process serves now: its pid, or 0 where unknown. */
  | { readonly is: "gone"; readonly successor: number }
  /** To a new process: one namespace each, and after the last one their count. */
  | { readonly is: "held"; readonly namespace: HeldNamespace }
  | { readonly is: "all"; readonly count: number }
  | { readonly is: "refused"; readonly reason: string };

/** A message as sent through a channel: the descriptors accompany the text, in the order in which it refers to them. */
interface WireMessage {
  readonly bytes: Buffer;
  readonly descriptors: readonly number[];
}

export function encode(message: ToKeeper | FromKeeper): WireMessage {
  if (!("namespace" in message)) return { bytes: Buffer.from(JSON.stringify(message)), descriptors: [] };
  const { netlink, pairs, programs, gate, ...fields } = message.namespace;
  const hasGate = gate !== undefined;
  const listeners = pairs.map(({ listening }) => listening);
  const namespace = { ...fields, hasGate, pairs: listeners, programs: programs.length };
  return {
    bytes: Buffer.from(JSON.stringify({ ...message, namespace })),
    descriptors: [netlink, ...(hasGate ? [gate] : []), ...pairs.flatMap(({ udp, tcp }) => [udp, tcp]), ...programs],
  };
}

/** undefined for an invalid message; the caller then closes the descriptors. */
export function decodeFromKeeper(wire: WireMessage): FromKeeper | undefined {
  const value = parsed(wire);
  switch (value?.["is"]) {
    case "hello":
      return helloIn(value);
    case "wanted":
      return isCount(value["successor"]) ? { is: "wanted", successor: value["successor"] } : undefined;
    case "alive":
    case "back":
      return { is: value["is"] };
    case "gone":
      return isCount(value["successor"]) ? { is: "gone", successor: value["successor"] } : undefined;
    case "held": {
      const namespace = namespaceIn(value["namespace"], wire.descriptors);
      return namespace && { is: "held", namespace };
    }
    case "all":
      return isCount(value["count"]) ? { is: "all", count: value["count"] } : undefined;
    case "refused":
      return { is: "refused", reason: text(value["reason"]) ?? "" };
    default:
      return undefined;
  }
}

export function decodeToKeeper(wire: WireMessage): ToKeeper | undefined {
  const value = parsed(wire);
  switch (value?.["is"]) {
    case "hello":
      return isCount(value["version"]) ? { is: "hello", version: value["version"] } : undefined;
    case "hold": {
      const namespace = namespaceIn(value["namespace"], wire.descriptors);
      return namespace && isCount(value["key"]) ? { is: "hold", key: value["key"], namespace } : undefined;
    }
    case "release":
      return isCount(value["key"]) ? { is: "release", key: value["key"] } : undefined;
    case "refuse":
      return { is: "refuse", reason: text(value["reason"]) ?? "" };
    case "beat":
    case "yield":
    case "end":
    case "take":
    case "taken":
      return { is: value["is"] };
    default:
      return undefined;
  }
}

/** That of an older version says less. */
function helloIn({ version, keeper, main, refusing = 0 }: Readonly<Record<string, unknown>>): FromKeeper | undefined {
  if (!isCount(version) || !isCount(keeper) || !isCount(main) || !isCount(refusing)) return undefined;
  return { is: "hello", version, keeper, main, refusing };
}

function parsed({ bytes }: WireMessage): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function namespaceIn(value: unknown, descriptors: readonly number[]): HeldNamespace | undefined {
  if (!isRecord(value)) return undefined;
  const { zone, isOwned, isLocked, hasGate } = value;
  const mark = isMark(value["mark"]) ? value["mark"] : undefined;
  const alone = WHEN_ALONE.find((each) => each === value["alone"]);
  const id = text(value["id"]);
  const tables = listOf(value["tables"], tableIn);
  const spared = listOf(value["spared"], (each) => (isPort(each) ? each : undefined));
  const listeners = listOf(value["pairs"], listeningIn);
  const [netlink, first] = descriptors;
  const gate = hasGate === true ? first : undefined;
  const others = descriptors.slice(gate === undefined ? 1 : 2);
  if (id === undefined || !isPort(zone) || netlink === undefined || typeof isOwned !== "boolean") return undefined;
  if (typeof isLocked !== "boolean" || typeof hasGate !== "boolean" || alone === undefined) return undefined;
  if (tables === undefined || spared === undefined || listeners === undefined) return undefined;
  const programs = others.slice(listeners.length * 2);
  if (programs.length > PROGRAMS_MAX || programs.length !== value["programs"]) return undefined;
  const pairs = listeners.map((listening, index): HeldPair => ({
    udp: others[index * 2] as number,
    tcp: others[index * 2 + 1] as number,
    listening,
  }));
  const known = { id, netlink, tables, zone, spared, pairs, programs, gate, isOwned, isLocked, alone };
  return mark === undefined ? known : { ...known, mark };
}

function tableIn(value: unknown): HeldTable | undefined {
  if (!isRecord(value)) return undefined;
  const { family } = value;
  const name = text(value["name"]);
  const isFamily = family === "ip" || family === "ip6" || family === "bridge";
  return isFamily && name !== undefined ? { family, name } : undefined;
}

function listeningIn(value: unknown): HeldPair["listening"] | undefined {
  if (!isRecord(value)) return undefined;
  const { udpPort, tcpPort } = value;
  const address = text(value["address"]);
  return address !== undefined && isPort(udpPort) && isPort(tcpPort) ? { address, udpPort, tcpPort } : undefined;
}

/** At most as many as there can be descriptors; undefined if one of them is invalid. */
function listOf<T>(value: unknown, read: (each: unknown) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(value) || value.length > LIMITS.channelDescriptors) return undefined;
  const found = (value as unknown[]).map(read);
  return found.every((each) => each !== undefined) ? found : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isMark(value: unknown): value is number {
  return isCount(value) && value > 0 && value <= 0xffff_ffff;
}

function isPort(value: unknown): value is number {
  return isCount(value) && value <= 0xffff;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
