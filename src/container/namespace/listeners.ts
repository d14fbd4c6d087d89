/**
 * Listeners: who in a namespace listens at a port already. Taking that port's queries from outside would take them from
 * somebody.
 */
import { readFileSync } from "node:fs";

import { addressBytes } from "../../model/address.ts";

/** What the kernel calls a socket that waits for whoever comes. */
const WAITING: Readonly<Record<Protocol, string>> = { udp: "07", tcp: "0A" };

type Protocol = "udp" | "tcp";

/** The protocols of those who would get what is sent to this address and port, in the namespace that the thread is in. */
export function listenersAt(address: string, port: number): Protocol[] {
  const bytes = addressBytes(address) ?? new Uint8Array(4);
  const places = new Set([inKernelsOrder(bytes), "0".repeat(bytes.length * 2), "0".repeat(32)]);
  return (["udp", "tcp"] as const).filter((protocol) =>
    [protocol, `${protocol}6`].some((table) =>
      waitingIn(table, protocol).some((place) => place.port === port && places.has(place.address)),
    ),
  );
}

/** The ports at which somebody listens on exactly this IPv4 address. */
export function boundPorts(address: string, protocol: Protocol): number[] {
  const place = inKernelsOrder(addressBytes(address) ?? new Uint8Array(4));
  return waitingIn(protocol, protocol)
    .filter((each) => each.address === place)
    .map(({ port }) => port);
}

/** An address as the kernel prints it, and a port. */
interface Place {
  readonly address: string;
  readonly port: number;
}

function waitingIn(table: string, protocol: Protocol): Place[] {
  return rowsOf(table)
    .filter(([, , , state]) => state === WAITING[protocol])
    .map(([, local = ""]) => {
      const [address = "", port = ""] = local.split(":");
      return { address, port: Number.parseInt(port, 16) };
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
