/**
 * Conversations: TCP connections of a namespace with its resolver that were under way when we came. They began with
 * Docker's resolver and end with it; led to us in the middle, they would be reset.
 */
import { procText } from "../../kernel/proc-text.ts";
import { addressBytes } from "../../model/address.ts";

const NET = "/proc/thread-self/net";
const ESTABLISHED = "01";
const DNS_PORT = 53;

/** What a conversation with the resolver takes, all in its namespace: the resolver's listener, and both ends. */
const LISTENER = 1;
const RESOLVERS_END = 1;
const CLIENTS_END = 1;

/**
 * The clients' ports, as the namespace that the thread is in lists them; nobody but the resolver listens for us there yet.
 * For a list the kernel walks the connections of all namespaces, which takes milliseconds; but it counts them for each, so
 * that no list is read where a container has only just started.
 */
export function conversationsWith(resolver: string): number[] {
  const v4 = socketsInUse("sockstat", "TCP");
  if (v4 < LISTENER + RESOLVERS_END) return [];
  const hex = hexOf(addressBytes(resolver) ?? new Uint8Array(4));
  const ports: number[] = [];
  if (v4 >= LISTENER + RESOLVERS_END + CLIENTS_END) ports.push(...portsTo("tcp", hex));
  // A client may speak IPv4 through a socket of IPv6, as Java does.
  if (socketsInUse("sockstat6", "TCP6") >= CLIENTS_END) ports.push(...portsTo("tcp6", `${MAPPED}${hex}`));
  return ports;
}

/** In front of an IPv4 address that stands in the place of one of IPv6. */
const MAPPED = `${"0".repeat(16)}${hexOf(Uint8Array.of(0, 0, 0xff, 0xff))}`;

function portsTo(list: "tcp" | "tcp6", address: string): number[] {
  const remote = `${address}:${DNS_PORT.toString(16).padStart(4, "0").toUpperCase()}`;
  return (procText(`${NET}/${list}`) ?? "")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , to, state]) => to === remote && state === ESTABLISHED)
    .map(([, from = ""]) => Number.parseInt(from.slice(from.indexOf(":") + 1), 16));
}

function socketsInUse(file: "sockstat" | "sockstat6", protocol: "TCP" | "TCP6"): number {
  const text = procText(`${NET}/${file}`);
  // A kernel without IPv6 has no such file.
  if (text === undefined) return 0;
  return Number(new RegExp(`^${protocol}: inuse (\\d+)`, "m").exec(text)?.[1] ?? Number.POSITIVE_INFINITY);
}

/** Four bytes of an address as the kernel prints them: as the number that they are in the machine's order. */
function hexOf(bytes: Uint8Array): string {
  const [number = 0] = new Uint32Array(bytes.slice().buffer);
  return number.toString(16).padStart(8, "0").toUpperCase();
}
