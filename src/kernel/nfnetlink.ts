/**
 * NftSocket: a netlink socket to nf_tables in the namespace it was made in. The kernel processes a whole batch inside
 * send, so a transaction is one call, which applies completely or not at all, and its replies can be read at once. The call
 * waits for a lock of the namespace, in a thread of the pool; reading waits for nothing.
 *
 * The socket is also an owner: a table created through it with the owner flag lives exactly as long as the socket.
 */
import { Fault, codeOf } from "../base/lib/fault.ts";
import { SystemFault, forceSendBuffer } from "./libc.ts";
import { NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkWriter, outcomeOf } from "./netlink-message.ts";
import { NETLINK_NETFILTER, type NetlinkMemory, type NetlinkRequest, NetlinkSocket } from "./netlink-socket.ts";
import * as nft from "./nft-constants.ts";

export const NFPROTO_IPV4 = 2;
export const NFPROTO_IPV6 = 10;
export const NFPROTO_BRIDGE = 7;
const SUBSYSTEM_NFTABLES = 10;
const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;
export const GENERIC_MESSAGE_BYTES = 4;
/** Every socket has room for this much. */
const USUAL_BYTES = 64 * 1024;

/** One command of a transaction: its family, number, flags beside REQUEST, and attributes. */
export interface NftCommand {
  readonly family: number;
  readonly command: number;
  readonly flags: number;
  /** What this command does, for the error message if the kernel refuses it. */
  readonly about: string;
  readonly write: (writer: NetlinkWriter) => void;
}

interface NftQuery {
  /** A GET command: objects of one kind. */
  readonly command: number;
  /** 0 is every family. */
  readonly family: number;
  /** It gets only the object that `select` identifies, if it exists, instead of all. */
  readonly isOne?: boolean;
  /** Only the beginning is read. */
  readonly isBeginning?: boolean;
  /** Attributes that the kernel filters by. It ignores those that it does not know. */
  readonly select?: (writer: NetlinkWriter) => void;
}

type VisitObject = (family: number, attributes: Buffer) => boolean | void;

export class NftSocket {
  readonly #socket: NetlinkSocket;
  /** The last transaction that is under way. */
  #last: Promise<void> | undefined;

  /** Opens the socket in the thread's namespace, or takes over one that another process made. */
  constructor(memory: NetlinkMemory, existing?: number) {
    this.#socket = new NetlinkSocket(memory, NETLINK_NETFILTER, existing);
  }

  /** Open as long as the socket; a caller that needs it longer duplicates it. */
  get fd(): number {
    return this.#socket.fd;
  }

  /** The port id with which the kernel identifies this socket as the cause of a change. */
  get port(): number {
    return this.#socket.port;
  }

  /** Applies all commands; or applies none and throws the kernel's first error. Transactions run one after the other. */
  async transact(commands: readonly NftCommand[]): Promise<void> {
    const result =
      this.#last === undefined ? this.#transact(commands) : this.#last.then(() => this.#transact(commands));
    const last = result.catch(() => undefined);
    this.#last = last;
    try {
      await result;
    } finally {
      if (this.#last === last) this.#last = undefined;
    }
  }

  async #transact(commands: readonly NftCommand[]): Promise<void> {
    const writer = new NetlinkWriter();
    const begin = this.#socket.nextSequence();
    writer.message(BATCH_BEGIN, NLM_F_REQUEST, begin, () => writer.raw(genericMessage(0, SUBSYSTEM_NFTABLES)));
    for (const [index, { family, command, flags, write }] of commands.entries()) {
      // The kernel always reports errors, and those of earlier commands come before this acknowledgement.
      const ack = index === commands.length - 1 ? NLM_F_ACK : 0;
      writer.message(typeOf(command), NLM_F_REQUEST | ack | flags, this.#socket.nextSequence(), () => {
        writer.raw(genericMessage(family, 0));
        write(writer);
      });
    }
    writer.message(BATCH_END, NLM_F_REQUEST, this.#socket.nextSequence(), () =>
      writer.raw(genericMessage(0, SUBSYSTEM_NFTABLES)),
    );
    await this.#send(writer.bytes);
    try {
      this.#requireSuccess(commands, begin);
    } catch (error) {
      // Remaining messages must not be read as an answer to the next transaction.
      this.#socket.discard();
      throw error;
    }
  }

  #requireSuccess(commands: readonly NftCommand[], begin: number): void {
    let isAnswered = false;
    for (const message of this.#socket.received()) {
      const outcome = outcomeOf(message);
      if (outcome === undefined || outcome === "end" || message.sequence < begin) continue;
      if (outcome.errno !== 0) {
        const about = commands[message.sequence - begin - 1]?.about ?? "the batch";
        throw new SystemFault("nf_tables transaction", outcome.errno, about);
      }
      isAnswered = true;
    }
    if (!isAnswered && commands.length > 0) throw new Error("nf_tables did not answer a transaction");
  }

  /**
   * Visits the objects that a GET command finds, each as its attributes' bytes. `visit` returns false to stop. To read during transactions,
   * use another socket: this one would lose their answers.
   */
  find(query: NftQuery, visit: VisitObject): void {
    this.#refuseBesideTransactions();
    this.#socket.request(requestOf(query), (body) => visitBody(body, visit));
  }

  /** Finds objects in parts, between which other work may run. */
  *findInParts(query: NftQuery, visit: VisitObject): Generator<void> {
    this.#refuseBesideTransactions();
    yield* this.#socket.requestInParts(requestOf(query), (body) => visitBody(body, visit));
  }

  /** Closes the socket; the kernel then removes every table that it owns. */
  close(): void {
    this.#socket.close();
  }

  /** The kernel takes no more at once than the send buffer of the socket has room for. */
  async #send(bytes: Uint8Array): Promise<void> {
    if (bytes.length > USUAL_BYTES) forceSendBuffer(this.#socket.fd, bytes.length);
    try {
      await this.#socket.sendInPool(bytes);
    } catch (error) {
      if (codeOf(error) !== "EMSGSIZE") throw error;
      throw new Fault("EMSGSIZE", `The kernel takes no transaction of ${bytes.length} bytes from this process`, {
        cause: error,
        remedy: "Raise net.core.wmem_max to as much, or have fewer rules of policies.",
      });
    }
  }

  #refuseBesideTransactions(): void {
    if (this.#last !== undefined) throw new Error("a transaction is under way on this socket");
  }
}

/** Errors of a kernel without nf_tables, of one too old for the request, or for an object that does not exist. */
const NO_TABLES = new Set(["EPROTONOSUPPORT", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOENT"]);

function requestOf({ command, family, isOne, isBeginning, select }: NftQuery): NetlinkRequest {
  return {
    type: typeOf(command),
    flags: isOne === true ? NLM_F_ACK : NLM_F_DUMP,
    call: isOne === true ? "nf_tables get" : "nf_tables dump",
    about: "",
    isBeginning,
    ...(isOne === true && { absent: NO_TABLES }),
    write: (writer) => {
      writer.raw(genericMessage(family, 0));
      select?.(writer);
    },
  };
}

function visitBody(body: Buffer, visit: VisitObject): boolean | void {
  return visit(body.readUInt8(0), body.subarray(GENERIC_MESSAGE_BYTES));
}

/** Removes a table and its contents; the kernel refuses if another socket owns it, or if it does not exist. */
export function deleteTable(family: number, name: string): NftCommand {
  return {
    family,
    command: nft.NFT_MSG_DELTABLE,
    flags: 0,
    about: `table "${name}"`,
    write: (w) => w.text(nft.NFTA_TABLE_NAME, name),
  };
}

/** Visits objects in the thread's namespace; there are none if the kernel has no nf_tables. */
export function visitTables(memory: NetlinkMemory, wanted: NftQuery | readonly NftQuery[], visit: VisitObject): void {
  let socket: NftSocket | undefined;
  try {
    socket = new NftSocket(memory);
    for (const query of [wanted].flat()) socket.find(query, visit);
  } catch (error) {
    if (!(error instanceof SystemFault) || !NO_TABLES.has(error.code)) throw error;
  } finally {
    socket?.close();
  }
}

/** Visits objects, but stops at the dump limit; returns whether it has visited all. */
export function visitFirst(memory: NetlinkMemory, wanted: NftQuery, visit: VisitObject): boolean {
  try {
    visitTables(memory, wanted, visit);
    return true;
  } catch (error) {
    if (codeOf(error) !== "TOO_MANY") throw error;
    return false;
  }
}

function typeOf(command: number): number {
  return (SUBSYSTEM_NFTABLES << 8) | command;
}

/** The four bytes after the header of every nfnetlink message. */
export function genericMessage(family: number, resource: number): Buffer {
  return Buffer.from([family, 0, resource >> 8, resource & 0xff]);
}
