/**
 * route_localnet: the sysctl, one per interface, that accepts packets for 127.0.0.0/8 from outside. The files are those of the thread's
 * current network namespace.
 */
import { writeFileSync } from "node:fs";
import { codeOf } from "../base/lib/fault.ts";
import { procText } from "./process.ts";

const FOLDER = "/proc/sys/net/ipv4/conf";
/** In place of an interface: the value that new interfaces start with. */
export const DEFAULT_INTERFACE = "default";

/** Undefined where there is no such interface. */
export function readRouteLocalnet(name: string): string | undefined {
  return procText(pathOf(name))?.trim();
}

/** The interface may be gone with its pod. */
export function writeRouteLocalnet(name: string, value: string): void {
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
