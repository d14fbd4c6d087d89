/**
 * route_localnet: the kernel's switch, one for each interface, that lets packets for 127.0.0.0/8 in from outside. The way
 * `loopback` needs it on the interfaces that pods come in by; what it was before is kept, and given back.
 *
 * The files under /proc/sys/net are those of the namespace that the thread is in.
 */
import { writeFileSync } from "node:fs";

import { procText } from "../../kernel/proc-text.ts";

const FOLDER = "/proc/sys/net/ipv4/conf";
/** What interfaces have that come later. */
const LATER = "default";

/** Interfaces by name (or `all`, or `default`), with what they have. */
export type RouteLocalnet = Readonly<Record<string, string>>;

/** Of these, those on which packets for 127.0.0.0/8 would be dropped, with what they have instead. */
export function lackingRouteLocalnet(names: readonly string[]): RouteLocalnet {
  if (read("all") === "1") return {};
  const values = names.map((name) => [name, read(name)] as const);
  return Object.fromEntries(
    values.filter((each): each is [string, string] => each[1] !== undefined && each[1] !== "1"),
  );
}

export function allowRouteLocalnet(names: readonly string[]): void {
  for (const name of names) write(name, "1");
}

/** Interfaces that are gone have taken it with them. */
export function restoreRouteLocalnet(before: RouteLocalnet): void {
  for (const [name, value] of Object.entries(before)) if (read(name) !== undefined) write(name, value);
}

/** The interfaces that pods come in by, and what later ones start with. */
export function podDevices(names: readonly string[], scope: "devices" | "all"): string[] {
  return scope === "all" ? ["all"] : [...names, LATER];
}

function read(name: string): string | undefined {
  return procText(pathOf(name))?.trim();
}

function write(name: string, value: string): void {
  writeFileSync(pathOf(name), value);
}

/** A dot in an interface's name is one in its folder's, too; a slash cannot be in either. */
function pathOf(name: string): string {
  return `${FOLDER}/${name}/route_localnet`;
}
