/**
 * A netlink socket to nf_tables in the namespace it was made in. The kernel works a whole batch off inside send, so the
 * answers can be read at once and a transaction is one synchronous call: all of it holds, or none of it.
 *
 * The socket is also an owner: a table made through it with the owner flag lives exactly as long as the socket does.
 */
import { SystemFault } from "./libc.ts";
import { NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkWriter, outcomeOf } from "./netlink-message.ts";
import { type NetlinkMemory, NetlinkSocket } from "./netlink-socket.ts";

export const NETLINK_NETFILTER = 12;
export const NFPROTO_IPV4 = 2;
export const NFPROTO_IPV6 = 10;
const SUBSYSTEM_NFTABLES = 10;
const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;
export const GENERIC_MESSAGE_BYTES = 4;

/** One command of a transaction: whose family, its number, flags beside REQUEST, and its attributes. */
export interface NftCommand {
  readonly family: number;
  readonly command: number;
  readonly flags: number;
  /** What this command does, for the message when the kernel refuses it. */
  readonly about: string;
  readonly write: (writer: NetlinkWriter) => void;
}

export class NftSocket {
  readonly #socket: NetlinkSocket;

  /** Opens the socket in the namespace that the calling thread is in. */
  constructor(memory: NetlinkMemory) {
    this.#socket = new NetlinkSocket(memory, NETLINK_NETFILTER);
  }

  /** The id by which the kernel names this socket as the cause of a change. */
  get port(): number {
    return this.#socket.port;
  }

  /** Applies all commands, or none and throws what the kernel said about the first it refused. */
  transact(commands: readonly NftCommand[]): void {
    const writer = new NetlinkWriter();
    const begin = this.#socket.nextSequence();
    writer.message(BATCH_BEGIN, NLM_F_REQUEST, begin, () => writer.raw(genericMessage(0, SUBSYSTEM_NFTABLES)));
    for (const { family, command, flags, write } of commands) {
      writer.message(typeOf(command), NLM_F_REQUEST | NLM_F_ACK | flags, this.#socket.nextSequence(), () => {
        writer.raw(genericMessage(family, 0));
        write(writer);
      });
    }
    writer.message(BATCH_END, NLM_F_REQUEST, this.#socket.nextSequence(), () =>
      writer.raw(genericMessage(0, SUBSYSTEM_NFTABLES)),
    );
    this.#socket.send(writer.bytes);
    let answered = 0;
    for (const message of this.#socket.received()) {
      const outcome = outcomeOf(message);
      if (outcome === undefined || outcome === "end" || message.sequence < begin) continue;
      if (outcome.errno !== 0) {
        this.#socket.discard();
        const about = commands[message.sequence - begin - 1]?.about ?? "the batch";
        throw new SystemFault("nf_tables transaction", outcome.errno, about);
      }
      answered++;
    }
    if (answered < commands.length) {
      throw new Error(`nf_tables answered ${answered} of ${commands.length} commands`);
    }
  }

  /**
   * All objects of one kind (a GET command) in `family`; 0 is every family. Each is handed over as its attributes' bytes. The
   * kernel leaves out what is not in the table or chain that `only` writes.
   */
  dump(
    command: number,
    family: number,
    visit: (family: number, attributes: Buffer) => void,
    only?: (writer: NetlinkWriter) => void,
  ): void {
    this.#socket.request(
      {
        type: typeOf(command),
        flags: NLM_F_DUMP,
        call: "nf_tables dump",
        about: "",
        write: (writer) => {
          writer.raw(genericMessage(family, 0));
          only?.(writer);
        },
      },
      (body) => visit(body.readUInt8(0), body.subarray(GENERIC_MESSAGE_BYTES)),
    );
  }

  /** Closes the socket; the kernel then removes every table that it owns. */
  close(): void {
    this.#socket.close();
  }
}

/** How a kernel without nf_tables answers, or with one that is too old to be asked so. */
const NO_TABLES = new Set(["EPROTONOSUPPORT", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOENT"]);

/** Dumps what there is in the namespace that the thread is in, which is nothing where the kernel has no nf_tables. */
export function visitTables(
  memory: NetlinkMemory,
  command: number,
  family: number,
  visit: (family: number, attributes: Buffer) => void,
  only?: (writer: NetlinkWriter) => void,
): void {
  let socket: NftSocket | undefined;
  try {
    socket = new NftSocket(memory);
    socket.dump(command, family, visit, only);
  } catch (error) {
    if (!(error instanceof SystemFault) || !NO_TABLES.has(error.code)) throw error;
  } finally {
    socket?.close();
  }
}

function typeOf(command: number): number {
  return (SUBSYSTEM_NFTABLES << 8) | command;
}

/** The four bytes that follow the header of every message to netfilter. */
export function genericMessage(family: number, resource: number): Buffer {
  return Buffer.from([family, 0, resource >> 8, resource & 0xff]);
}
