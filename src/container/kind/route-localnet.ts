/**
 * route_localnet: the kernel's switch, one for each interface, that lets packets for 127.0.0.0/8 in from outside. The way
 * `loopback` needs it on the interfaces that pods come in by; what it was before is kept, and given back.
 *
 * The files under /proc/sys/net are those of the namespace that the thread is in.
 */
import { writeFileSync } from "node:fs";

import { procText } from "../../kernel/proc-text.ts";
import type { Link } from "../../kernel/rtnetlink.ts";
import { codeOf } from "../../base/lib/fault.ts";

const FOLDER = "/proc/sys/net/ipv4/conf";
/** What interfaces have that come later. */
const LATER = "default";
const ALL = "all";

/** Interfaces by name (or `all`, or `default`), with what they have. */
export type RouteLocalnet = Readonly<Record<string, string>>;

/** What has to be known to put everything back. */
export interface LocalnetRecord {
  /** What those had that were switched. */
  readonly routeLocalnet: RouteLocalnet;
  /**
   * Interfaces, by index, that had it on by somebody else's hand when `default` was switched. Any other that has it on has
   * that from us: it came later, and began with what `default` said.
   */
  readonly openBefore?: readonly number[];
}

type NamedLink = Pick<Link, "name" | "index">;

/** Of these, those on which packets for 127.0.0.0/8 would be dropped, with what they have instead. */
export function disabledRouteLocalnet(names: readonly string[]): RouteLocalnet {
  if (read(ALL) === "1") return {};
  const values = names.map((name) => [name, read(name)] as const);
  return Object.fromEntries(
    values.filter((each): each is [string, string] => each[1] !== undefined && each[1] !== "1"),
  );
}

/** The record that switching these on needs, with what is known from before; of interfaces that are gone nothing is. */
export function extendLocalnetRecord(
  known: LocalnetRecord,
  lacking: RouteLocalnet,
  links: readonly NamedLink[],
): LocalnetRecord {
  const present = new Set([ALL, LATER, ...links.map(({ name }) => name)]);
  const before = Object.entries(known.routeLocalnet).filter(([name]) => present.has(name));
  const isFirst = Object.hasOwn(lacking, LATER) && !Object.hasOwn(known.routeLocalnet, LATER);
  const openBefore = isFirst
    ? links.filter(({ name }) => read(name) === "1").map(({ index }) => index)
    : known.openBefore;
  return {
    routeLocalnet: { ...lacking, ...Object.fromEntries(before) },
    ...(openBefore !== undefined && { openBefore }),
  };
}

export function enableRouteLocalnet(names: readonly string[]): void {
  for (const name of names) write(name, "1");
}

/** Of one interface, for whoever wants to see what happens without. */
export function disableRouteLocalnet(name: string): void {
  write(name, "0");
}

/** Returns what was done, a sentence each. */
export function restoreRouteLocalnet(record: LocalnetRecord, links: () => readonly NamedLink[]): string[] {
  const { [LATER]: later, ...others } = record.routeLocalnet;
  const did: string[] = [];
  const put = (name: string, value: string): void => {
    const now = read(name);
    if (now === undefined || now === value) return;
    write(name, value);
    did.push(`set route_localnet of ${name} to ${value} again`);
  };
  // First, so that nothing more begins with it.
  if (later !== undefined) put(LATER, later);
  for (const [name, value] of Object.entries(others)) put(name, value);
  if (later === undefined) return did;
  const heirs = links().filter(
    ({ name, index }) => !Object.hasOwn(others, name) && record.openBefore?.includes(index) !== true,
  );
  for (const { name } of heirs) if (read(name) === "1") put(name, later);
  return did;
}

/** The interfaces that pods come in by, and what later ones start with. */
export function podDevices(names: readonly string[], scope: "devices" | "all"): string[] {
  return scope === "all" ? [ALL] : [...names, LATER];
}

function read(name: string): string | undefined {
  return procText(pathOf(name))?.trim();
}

/** Interfaces come and go with their pods, and have taken it with them. */
function write(name: string, value: string): void {
  try {
    writeFileSync(pathOf(name), value);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** A dot in an interface's name is one in its folder's, too; a slash cannot be in either. */
function pathOf(name: string): string {
  return `${FOLDER}/${name}/route_localnet`;
}
