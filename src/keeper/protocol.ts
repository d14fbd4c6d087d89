/**
 * Protocol: the messages between a keeper, the main process that it watches, and a successor: one JSON object each,
 * with the descriptors that it holds beside it. The first message of each side is `hello`; a side that sees another
 * version there sends nothing more. An unknown message ends the connection.
 */
import { LIMITS } from "../base/limits.ts";
import { KEEPER_LIMITS } from "./limits.ts";
import type { HeldNamespace, HeldPair, HeldTable } from "../base/model/held-namespace.ts";

/** Must change whenever anything below changes. */
export const PROTOCOL_VERSION = 1;

/** From the main process, or from a successor. */
export type ToKeeper =
  | { readonly is: "hello"; readonly version: number }
  /** Hold this under a key, instead of what the key held before. */
  | { readonly is: "hold"; readonly key: number; readonly namespace: HeldNamespace }
  | { readonly is: "release"; readonly key: number }
  | { readonly is: "beat" }
  /** The next heartbeat may be this late: the event loop is blocked while a program that it started runs. */
  | { readonly is: "busy"; readonly ms: number }
  /** The main process is paused: it reads no queries and touches no rules until it receives `back` or `gone`. */
  | { readonly is: "yield" }
  /** Nothing is held any more, and no successor will come. */
  | { readonly is: "end" }
  /** A successor requests what is held. */
  | { readonly is: "take" }
  /** The successor serves, and the keeper holds what it serves with. */
  | { readonly is: "taken" };

export type FromKeeper =
  /** The pids of the keeper and of the watched process; 0 where unknown. */
  | { readonly is: "hello"; readonly version: number; readonly keeper: number; readonly main: number }
  /** Acknowledges a heartbeat. */
  | { readonly is: "alive" }
  /** A successor requests a takeover: pause. */
  | { readonly is: "wanted" }
  /** The takeover failed: resume. */
  | { readonly is: "back" }
  /** Another process serves now: its pid, or 0 where unknown. */
  | { readonly is: "gone"; readonly successor: number }
  /** To a successor: one namespace each, and after the last one their count. */
  | { readonly is: "held"; readonly namespace: HeldNamespace }
  | { readonly is: "all"; readonly count: number }
  | { readonly is: "refused"; readonly reason: string };

/** A message as sent through a channel: the descriptors accompany the text, in the order in which it refers to them. */
export interface WireMessage {
  readonly bytes: Buffer;
  readonly descriptors: readonly number[];
}

export function encode(message: ToKeeper | FromKeeper): WireMessage {
  if (!("namespace" in message)) return { bytes: Buffer.from(JSON.stringify(message)), descriptors: [] };
  const { netlink, pairs, ...told } = message.namespace;
  const namespace = { ...told, pairs: pairs.map(({ listening }) => listening) };
  return {
    bytes: Buffer.from(JSON.stringify({ ...message, namespace })),
    descriptors: [netlink, ...pairs.flatMap(({ udp, tcp }) => [udp, tcp])],
  };
}

/** undefined for an invalid message; the caller then closes the descriptors. */
export function decodeFromKeeper(wire: WireMessage): FromKeeper | undefined {
  const said = parsed(wire);
  switch (said?.["is"]) {
    case "hello":
      return helloIn(said);
    case "alive":
    case "wanted":
    case "back":
      return { is: said["is"] };
    case "gone":
      return isCount(said["successor"]) ? { is: "gone", successor: said["successor"] } : undefined;
    case "held": {
      const namespace = namespaceIn(said["namespace"], wire.descriptors);
      return namespace && { is: "held", namespace };
    }
    case "all":
      return isCount(said["count"]) ? { is: "all", count: said["count"] } : undefined;
    case "refused":
      return { is: "refused", reason: text(said["reason"]) ?? "" };
    default:
      return undefined;
  }
}

export function decodeToKeeper(wire: WireMessage): ToKeeper | undefined {
  const said = parsed(wire);
  switch (said?.["is"]) {
    case "hello":
      return isCount(said["version"]) ? { is: "hello", version: said["version"] } : undefined;
    case "hold": {
      const namespace = namespaceIn(said["namespace"], wire.descriptors);
      return namespace && isCount(said["key"]) ? { is: "hold", key: said["key"], namespace } : undefined;
    }
    case "release":
      return isCount(said["key"]) ? { is: "release", key: said["key"] } : undefined;
    case "busy":
      return isCount(said["ms"]) && said["ms"] <= KEEPER_LIMITS.busyMs ? { is: "busy", ms: said["ms"] } : undefined;
    case "beat":
    case "yield":
    case "end":
    case "take":
    case "taken":
      return { is: said["is"] };
    default:
      return undefined;
  }
}

function helloIn({ version, keeper, main }: Readonly<Record<string, unknown>>): FromKeeper | undefined {
  return isCount(version) && isCount(keeper) && isCount(main) ? { is: "hello", version, keeper, main } : undefined;
}

function parsed({ bytes }: WireMessage): Readonly<Record<string, unknown>> | undefined {
  try {
    const said: unknown = JSON.parse(bytes.toString("utf8"));
    return isRecord(said) ? said : undefined;
  } catch {
    return undefined;
  }
}

function namespaceIn(said: unknown, descriptors: readonly number[]): HeldNamespace | undefined {
  if (!isRecord(said)) return undefined;
  const { zone } = said;
  const id = text(said["id"]);
  const tables = listOf(said["tables"], tableIn);
  const spared = listOf(said["spared"], (each) => (isPort(each) ? each : undefined));
  const places = listOf(said["pairs"], placeIn);
  const [netlink, ...others] = descriptors;
  if (id === undefined || !isPort(zone) || netlink === undefined) return undefined;
  if (tables === undefined || spared === undefined || places === undefined) return undefined;
  if (others.length !== places.length * 2) return undefined;
  const pairs = places.map((listening, index): HeldPair => ({
    udp: others[index * 2] as number,
    tcp: others[index * 2 + 1] as number,
    listening,
  }));
  return { id, netlink, tables, zone, spared, pairs };
}

function tableIn(said: unknown): HeldTable | undefined {
  if (!isRecord(said)) return undefined;
  const { family } = said;
  const name = text(said["name"]);
  return (family === "ip" || family === "ip6") && name !== undefined ? { family, name } : undefined;
}

function placeIn(said: unknown): HeldPair["listening"] | undefined {
  if (!isRecord(said)) return undefined;
  const { udpPort, tcpPort } = said;
  const address = text(said["address"]);
  return address !== undefined && isPort(udpPort) && isPort(tcpPort) ? { address, udpPort, tcpPort } : undefined;
}

/** At most as many as there can be descriptors; undefined if one of them is invalid. */
function listOf<T>(said: unknown, read: (each: unknown) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(said) || said.length > LIMITS.channelDescriptors) return undefined;
  const found = (said as unknown[]).map(read);
  return found.every((each) => each !== undefined) ? found : undefined;
}

function isCount(said: unknown): said is number {
  return Number.isSafeInteger(said) && (said as number) >= 0;
}

function isPort(said: unknown): said is number {
  return isCount(said) && said <= 0xffff;
}

function isRecord(said: unknown): said is Readonly<Record<string, unknown>> {
  return typeof said === "object" && said !== null && !Array.isArray(said);
}

function text(said: unknown): string | undefined {
  return typeof said === "string" ? said : undefined;
}
