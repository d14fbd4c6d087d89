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
const DEFAULT = "default";
const ALL = "all";

/** The values by interface name, `all` or `default`. */
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

type NamedLink = Pick<Link, "name" | "index">;

/** The ones of these that drop packets for 127.0.0.0/8, with their values. */
export function disabledRouteLocalnet(names: readonly string[]): RouteLocalnet {
  if (read(ALL) === "1") return {};
  const values = names.map((name) => [name, read(name)] as const);
  return Object.fromEntries(
    values.filter((each): each is [string, string] => each[1] !== undefined && each[1] !== "1"),
  );
}

/** The record to save before switching these on: the known one without interfaces that are gone, and the new ones. */
export function extendLocalnetRecord(
  known: LocalnetRecord,
  disabled: RouteLocalnet,
  links: readonly NamedLink[],
): LocalnetRecord {
  const present = new Set([ALL, DEFAULT, ...links.map(({ name }) => name)]);
  const before = Object.entries(known.routeLocalnet).filter(([name]) => present.has(name));
  const isFirst = Object.hasOwn(disabled, DEFAULT) && !Object.hasOwn(known.routeLocalnet, DEFAULT);
  const openBefore = isFirst
    ? links.filter(({ name }) => read(name) === "1").map(({ index }) => index)
    : known.openBefore;
  return {
    routeLocalnet: { ...disabled, ...Object.fromEntries(before) },
    ...(openBefore !== undefined && { openBefore }),
  };
}

export function enableRouteLocalnet(names: readonly string[]): void {
  for (const name of names) write(name, "1");
}

/** For one interface, to test what happens without it. */
export function disableRouteLocalnet(name: string): void {
  write(name, "0");
}

/** Returns the actions taken, a sentence each. */
export function restoreRouteLocalnet(record: LocalnetRecord, links: () => readonly NamedLink[]): string[] {
  const { [DEFAULT]: later, ...others } = record.routeLocalnet;
  const did: string[] = [];
  const put = (name: string, value: string): void => {
    const now = read(name);
    if (now === undefined || now === value) return;
    write(name, value);
    did.push(`restored route_localnet of ${name} to ${value}`);
  };
  // First, so that no further interface starts with it.
  if (later !== undefined) put(DEFAULT, later);
  for (const [name, value] of Object.entries(others)) put(name, value);
  if (later === undefined) return did;
  const inheriting = links().filter(
    ({ name, index }) => !Object.hasOwn(others, name) && record.openBefore?.includes(index) !== true,
  );
  for (const { name } of inheriting) if (read(name) === "1") put(name, later);
  return did;
}

/** The names to switch on for the interfaces that face pods, and for new ones. */
export function podDevices(names: readonly string[], scope: "devices" | "all"): string[] {
  return scope === "all" ? [ALL] : [...names, DEFAULT];
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
