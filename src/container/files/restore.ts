/**
 * Restore: undoes the changes in a container's journal record without what has made them: after a SIGKILL, or when the settings no longer
 * mean that container.
 */
import { codeOf, reasonOf } from "../../base/lib/fault.ts";
import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { DEFAULT_INTERFACE, readRouteLocalnet, writeRouteLocalnet } from "../../kernel/route-localnet.ts";
import { LOOPBACK_INDEX } from "../../kernel/rtnetlink-constants.ts";
import { type Link, RouteSocket } from "../../kernel/rtnetlink.ts";
import { findDockerResolver } from "../namespace/docker-resolver.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { proveNamespace } from "../namespace/proof.ts";
import type { ChangeRecord } from "./journal.ts";
import type { OpenFile } from "./resolv-conf-file.ts";
import { restoreRecord } from "./written-resolv-conf.ts";

/** On lo. */
export interface LoAddress {
  readonly address: string;
  readonly prefixLength: number;
}

/** The values by interface name, or `default`. */
export type RouteLocalnet = Readonly<Record<string, string>>;

/** What is needed to restore everything. */
export interface LocalnetRecord {
  /** The previous values of what was switched on. */
  readonly routeLocalnet: RouteLocalnet;
  /**
   * The indexes of interfaces on which another program had switched it on before we switched `default` on. All others that have
   * it on inherited that from us: they are newer and started with the value of `default`.
   */
  readonly openBefore?: readonly number[];
}

export type NamedLink = Pick<Link, "name" | "index" | "routeLocalnet">;

interface RestoreTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly host: EngineHost;
}

interface RestoreOutcome {
  /** The actions removed and the failures, a sentence each. */
  readonly did: readonly string[];
  /** If false, the record is still needed. */
  readonly isComplete: boolean;
}

/** The outcome for a container that has restarted since, which reset everything. */
export const NOTHING_TO_RESTORE: RestoreOutcome = { did: [], isComplete: true };

/** Tries every step even if others fail. */
export async function restoreContainer(
  record: ChangeRecord,
  { runner, memory, host }: RestoreTools,
): Promise<RestoreOutcome> {
  let reachableAt: readonly string[] = [];
  const inside = await attempt(async () => {
    const { fd } = proveNamespace(record, host, runner.homeId);
    try {
      const netns = runner.namespaceOf(fd, memory);
      ({ reachableAt } = await findDockerResolver(netns));
      return netns.within(() => restoreNamespace(record, memory));
    } finally {
      closeQuietly(fd);
    }
  });
  const { resolvConf: { path = "" } = {} } = record;
  const file = await attempt(() =>
    restoreResolvConf(record, (flags) => openInRoot(host.root, path, flags), reachableAt),
  );
  return { did: [...file.did, ...inside.did], isComplete: file.isComplete && inside.isComplete };
}

/** Restores lo and route_localnet. Call inside the namespace. */
export function restoreNamespace(record: ChangeRecord, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const did = [...restoreRouteLocalnet(record, () => route.links())];
    const removed = removeLoAddresses(route, record.addresses);
    return [...(removed.length === 0 ? [] : [`removed ${removed.join(", ")} from lo`]), ...did];
  } finally {
    route.close();
  }
}

/** `reachableAt`: the addresses of Docker's resolver. */
export function restoreResolvConf(
  { resolvConf }: ChangeRecord,
  open: OpenFile,
  reachableAt: readonly string[],
): string[] {
  if (resolvConf === undefined) return [];
  switch (restoreRecord(open, resolvConf, reachableAt)) {
    case "restored":
      return ["restored resolv.conf"];
    case "changed":
      return ["left resolv.conf unchanged: another program has edited it"];
    case "gone":
      return ["found no resolv.conf to restore"];
  }
}

async function attempt(act: () => Promise<string[]> | string[]): Promise<RestoreOutcome> {
  try {
    return { did: await act(), isComplete: true };
  } catch (error) {
    return { did: [`failed: ${reasonOf(error)}`], isComplete: false };
  }
}

/** Returns the addresses that still existed. */
function removeLoAddresses(route: RouteSocket, addresses: readonly LoAddress[]): string[] {
  return addresses.flatMap((each) => {
    try {
      route.removeAddress({ index: LOOPBACK_INDEX, ...each });
      return [each.address];
    } catch (error) {
      if (codeOf(error) !== "EADDRNOTAVAIL") throw error;
      return [];
    }
  });
}

/** Yields after each action, with a sentence about it: a node has two interfaces for each pod. */
export function* restoreRouteLocalnet(record: LocalnetRecord, links: () => readonly NamedLink[]): Generator<string> {
  const { [DEFAULT_INTERFACE]: later, ...others } = record.routeLocalnet;
  const put = (name: string, value: string): string => {
    writeRouteLocalnet(name, value);
    return `restored route_localnet of ${name} to ${value}`;
  };
  // The default first, so that no further interface starts with it.
  const now = later === undefined ? undefined : readRouteLocalnet(DEFAULT_INTERFACE);
  if (later !== undefined && now !== undefined && now !== later) yield put(DEFAULT_INTERFACE, later);
  for (const { name, index, routeLocalnet } of hasInterfaces(record) ? links() : []) {
    const inherited = record.openBefore?.includes(index) === true ? undefined : later;
    const before = Object.hasOwn(others, name) ? others[name] : inherited;
    if (before !== undefined && routeLocalnet !== undefined && (before !== "0") !== routeLocalnet)
      yield put(name, before);
  }
}

/** Whether there is anything to restore. */
export function hasInterfaces({ routeLocalnet }: LocalnetRecord): boolean {
  return Object.keys(routeLocalnet).length > 0;
}
