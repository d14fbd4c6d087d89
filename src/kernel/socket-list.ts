/**
 * Socket list: the sockets of the namespace that the thread is in that have one end at an address or port. Asked by sock_diag,
 * and read from /proc where the kernel has none: there it writes all of them, so that of very many none are told.
 */
import { procText } from "./proc-text.ts";
import { type ListedSocket, type SocketEnd, type SocketFilter, listSockets } from "./sock-diag.ts";

const NET = "/proc/thread-self/net";
/** What the kernel calls a socket's state. */
const STATES: Readonly<Record<SocketFilter["state"], string>> = { connected: "01", unconnected: "07", listening: "0A" };

/** Throws where there are more than are looked at. */
export function socketsAt(filter: SocketFilter): readonly ListedSocket[] {
  return listSockets(filter) ?? socketsInProc(filter);
}

/** The same from /proc alone. */
export function socketsInProc({ protocol, family, state, end, address, port }: SocketFilter): ListedSocket[] {
  const wanted = address === undefined ? undefined : Buffer.from(address);
  return (procText(`${NET}/${protocol}${family === 4 ? "" : "6"}`) ?? "")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , word]) => word === STATES[state])
    .map(([, local = "", remote = ""]) => ({ local: endOf(local), remote: endOf(remote) }))
    .filter((each) => {
      const { address: held, port: number } = each[end];
      return (port === undefined || number === port) && (wanted === undefined || isAt(held, wanted));
    });
}

/** Where a socket of IPv6 speaks IPv4, the IPv4 address follows this. */
const MAPPED = Buffer.from("00000000000000000000ffff", "hex");

function isAt(held: Buffer, wanted: Buffer): boolean {
  return held.equals(wanted) || (wanted.length === 4 && held.equals(Buffer.concat([MAPPED, wanted])));
}

/** Addresses are printed as numbers of 32 bits in the machine's order, ports as they are. */
function endOf(text: string): SocketEnd {
  const [address = "", port = ""] = text.split(":");
  const words = (address.match(/.{8}/g) ?? []).map((word) => Number.parseInt(word, 16));
  return { address: Buffer.from(Uint32Array.from(words).buffer), port: Number.parseInt(port, 16) };
}
