/**
 * route_localnet: the sysctl, one per interface, that accepts packets for 127.0.0.0/8 from outside. Kind mode `loopback` needs
 * it on the interfaces that face pods. The previous values are recorded and restored.
 *
 * The files under /proc/sys/net are those of the thread's current network namespace.
 */
import { writeFileSync } from "node:fs";

import { procText } from "../../kernel/proc-text.ts";
import type { Link } from "../../kernel/rtnetlink.ts";
import { codeOf } from "../../base/lib/fault.ts";

const FOLDER = "/proc/sys/net/ipv4/conf";
/** The value that new interfaces start with. */
export const DEFAULT = "default";
const ALL = "all";

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

type NamedLink = Pick<Link, "name" | "index" | "routeLocalnet">;

/** The ones of these that drop packets for 127.0.0.0/8, with their values. The kernel lists those with the links. */
export function disabledRouteLocalnet(links: readonly NamedLink[], others: readonly string[] = []): RouteLocalnet {
  if (read(ALL) === "1") return {};
  const ofLinks = links.filter(({ routeLocalnet }) => routeLocalnet === false).map(({ name }) => [name, "0"] as const);
  const ofOthers = others.flatMap((name) => {
    const value = read(name);
    return value === undefined || value === "1" ? [] : [[name, value] as const];
  });
  return Object.fromEntries([...ofLinks, ...ofOthers]);
}

/** The record to save before switching these on: the known one without interfaces that are gone, and the new ones. */
export function extendLocalnetRecord(
  known: LocalnetRecord,
  disabled: RouteLocalnet,
  links: readonly NamedLink[],
): LocalnetRecord {
  const present = new Set([DEFAULT, ...links.map(({ name }) => name)]);
  const before = Object.entries(known.routeLocalnet).filter(([name]) => present.has(name));
  const isFirst = Object.hasOwn(disabled, DEFAULT) && !Object.hasOwn(known.routeLocalnet, DEFAULT);
  const openBefore = isFirst
    ? links.filter(({ routeLocalnet }) => routeLocalnet === true).map(({ index }) => index)
    : known.openBefore;
  return {
    routeLocalnet: { ...disabled, ...Object.fromEntries(before) },
    ...(openBefore !== undefined && { openBefore }),
  };
}

export function enableRouteLocalnet(name: string): void {
  write(name, "1");
}

/** Switches it off for one interface, to test what happens without it. */
export function disableRouteLocalnet(name: string): void {
  write(name, "0");
}

/** Yields after each action, with a sentence about it: a node has two interfaces for each pod. */
export function* restoreRouteLocalnet(record: LocalnetRecord, links: () => readonly NamedLink[]): Generator<string> {
  const { [DEFAULT]: later, ...others } = record.routeLocalnet;
  const put = (name: string, value: string): string => {
    write(name, value);
    return `restored route_localnet of ${name} to ${value}`;
  };
  // The default first, so that no further interface starts with it.
  const now = later === undefined ? undefined : read(DEFAULT);
  if (later !== undefined && now !== undefined && now !== later) yield put(DEFAULT, later);
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

function read(name: string): string | undefined {
  return procText(pathOf(name))?.trim();
}

/** The interface may be gone with its pod. */
function write(name: string, value: string): void {
  try {
    writeFileSync(pathOf(name), value);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** An interface name may contain dots, which the folder name keeps, but no slash. */
function pathOf(name: string): string {
  return `${FOLDER}/${name}/route_localnet`;
}
