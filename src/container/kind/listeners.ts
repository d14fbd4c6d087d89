/**
 * Listeners: who in a namespace listens at a port already. Taking that port's queries from outside would take them from
 * somebody.
 */
import { readFileSync } from "node:fs";

import { addressBytes } from "../../model/address.ts";

/** What the kernel calls a socket that waits for whoever comes. */
const WAITING: Readonly<Record<string, string>> = { udp: "07", tcp: "0A" };

/** The protocols of those who would get what is sent to this address and port, in the namespace that the thread is in. */
export function listenersAt(address: string, port: number): string[] {
  const bytes = addressBytes(address) ?? new Uint8Array(4);
  const places = new Set([inKernelsOrder(bytes), "0".repeat(bytes.length * 2), "0".repeat(32)]);
  const suffix = port.toString(16).padStart(4, "0").toUpperCase();
  return Object.entries(WAITING).flatMap(([protocol, waiting]) => {
    const sockets = [protocol, `${protocol}6`].flatMap((table) => rowsOf(table));
    const isThere = sockets.some(([, local, , state]) => {
      const [where, which] = (local ?? "").split(":");
      return which === suffix && state === waiting && places.has(where ?? "");
    });
    return isThere ? [protocol] : [];
  });
}

function rowsOf(table: string): string[][] {
  try {
    const lines = readFileSync(`/proc/thread-self/net/${table}`, "utf8").split("\n").slice(1);
    return lines.map((line) => line.trim().split(/\s+/));
  } catch {
    return [];
  }
}

/** Addresses are printed as numbers of 32 bits in the machine's order. */
function inKernelsOrder(bytes: Uint8Array): string {
  const words = new Uint32Array(bytes.slice().buffer);
  return [...words].map((word) => word.toString(16).padStart(8, "0").toUpperCase()).join("");
}
