/**
 * SocketList: the sockets of the thread's namespace with one end at an address or port. Uses sock_diag, or /proc where
 * the kernel lacks it: /proc lists all sockets, so a namespace with very many cannot be read.
 */
import { procText } from "./proc-text.ts";
import {
  type ListedSocket,
  type Receiving,
  type SocketEnd,
  type SocketFilter,
  listSockets,
  receivedOf,
} from "./sock-diag.ts";

const NET = "/proc/thread-self/net";
/** Socket states as /proc writes them. */
const STATES: Readonly<Record<SocketFilter["state"], string>> = { connected: "01", unconnected: "07", listening: "0A" };

/** Lists those that one of the filters finds. Throws if there are more than the limit. */
export function socketsAt(...filters: readonly SocketFilter[]): readonly ListedSocket[] {
  return listSockets(filters) ?? filters.flatMap(socketsInProc);
}

/** Finds those of these packets that a socket receives. */
export function receivedBySockets(packets: readonly Receiving[]): readonly Receiving[] {
  return receivedOf(packets) ?? packets.filter(isReceivedInProc);
}

function isReceivedInProc({ address, ...where }: Receiving): boolean {
  const target = Buffer.from(address);
  return ([4, 6] as const)
    .flatMap((family) => socketsInProc({ ...where, family, end: "local" }))
    .some(({ local }) => local.address.equals(target) || local.address.every((byte) => byte === 0));
}

/** Reads /proc only. */
export function socketsInProc({ protocol, family, state, end, address, port }: SocketFilter): ListedSocket[] {
  const wanted = address === undefined ? undefined : Buffer.from(address);
  return (procText(`${NET}/${protocol}${family === 4 ? "" : "6"}`) ?? "")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , word]) => word === STATES[state])
    .map(([, local = "", remote = ""]) => ({ protocol, local: endOf(local), remote: endOf(remote) }))
    .filter((each) => {
      const { address: held, port: number } = each[end];
      return (port === undefined || number === port) && (wanted === undefined || isAt(held, wanted));
    });
}

/** The prefix of an IPv4-mapped IPv6 address. */
const MAPPED = Buffer.from("00000000000000000000ffff", "hex");

function isAt(held: Buffer, wanted: Buffer): boolean {
  return held.equals(wanted) || (wanted.length === 4 && held.equals(Buffer.concat([MAPPED, wanted])));
}

/** /proc prints addresses as 32-bit numbers in native byte order, and ports as numbers. */
function endOf(text: string): SocketEnd {
  const [address = "", port = ""] = text.split(":");
  const words = (address.match(/.{8}/g) ?? []).map((word) => Number.parseInt(word, 16));
  return { address: Buffer.from(Uint32Array.from(words).buffer), port: Number.parseInt(port, 16) };
}
