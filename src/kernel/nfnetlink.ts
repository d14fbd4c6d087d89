/**
 * A netlink socket to nf_tables in the namespace it was made in. The kernel works a whole batch off inside send, so the
 * answers can be read at once and a transaction is one synchronous call: all of it holds, or none of it.
 *
 * The socket is also an owner: a table made through it with the owner flag lives exactly as long as the socket does.
 */
import {
  AF_NETLINK,
  SOCK_RAW,
  SystemFault,
  addressOf,
  bindTo,
  closeQuietly,
  lastErrno,
  localAddress,
  receive,
  send,
  setReceiveBuffer,
  socket,
} from "./libc.ts";
import {
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_REQUEST,
  type NetlinkMessage,
  NetlinkWriter,
  messagesIn,
  outcomeOf,
} from "./netlink-message.ts";

export const NETLINK_NETFILTER = 12;
export const NFPROTO_IPV4 = 2;
const SUBSYSTEM_NFTABLES = 10;
const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;
const GENERIC_MESSAGE_BYTES = 4;
const RECEIVE_BYTES = 64 * 1024;
/** Room for the answers to the longest transaction, so that no refusal is lost. */
const RECEIVE_QUEUE_BYTES = 256 * 1024;

/** One command of a transaction: its number, flags beside REQUEST, and its attributes. */
export interface NftCommand {
  readonly command: number;
  readonly flags: number;
  /** What this command does, for the message when the kernel refuses it. */
  readonly about: string;
  readonly write: (writer: NetlinkWriter) => void;
}

/** The memory that answers are received into, shared by all sockets because every exchange is synchronous. */
export class NetlinkMemory {
  readonly bytes = Buffer.allocUnsafeSlow(RECEIVE_BYTES);
  readonly address = addressOf(this.bytes);
}

export class NftSocket {
  readonly #memory: NetlinkMemory;
  readonly #fd: number;
  #sequence = 0;
  /** The id by which the kernel names this socket as the cause of a change. */
  readonly port: number;

  /** Opens the socket in the namespace that the calling thread is in. */
  constructor(memory: NetlinkMemory) {
    this.#memory = memory;
    this.#fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
    try {
      const anyPort = Buffer.alloc(12);
      anyPort.writeUInt16LE(AF_NETLINK, 0);
      bindTo(this.#fd, anyPort, "netlink");
      setReceiveBuffer(this.#fd, RECEIVE_QUEUE_BYTES);
      this.port = localAddress(this.#fd).readUInt32LE(4);
    } catch (error) {
      closeQuietly(this.#fd);
      throw error;
    }
  }

  /** Applies all commands, or none and throws what the kernel said about the first it refused. */
  transact(commands: readonly NftCommand[]): void {
    const writer = new NetlinkWriter();
    const begin = ++this.#sequence;
    writer.message(BATCH_BEGIN, NLM_F_REQUEST, begin, () => writer.raw(genericMessage(0, SUBSYSTEM_NFTABLES)));
    for (const { command, flags, write } of commands) {
      writer.message(typeOf(command), NLM_F_REQUEST | NLM_F_ACK | flags, ++this.#sequence, () => {
        writer.raw(genericMessage(NFPROTO_IPV4, 0));
        write(writer);
      });
    }
    writer.message(BATCH_END, NLM_F_REQUEST, ++this.#sequence, () => writer.raw(genericMessage(0, SUBSYSTEM_NFTABLES)));
    this.#send(writer.bytes);
    let answered = 0;
    for (const message of this.#receiveAll()) {
      const outcome = outcomeOf(message);
      if (outcome === undefined || outcome === "end" || message.sequence < begin) continue;
      if (outcome.errno !== 0) {
        this.#discardAnswers();
        const about = commands[message.sequence - begin - 1]?.about ?? "the batch";
        throw new SystemFault("nf_tables transaction", outcome.errno, about);
      }
      answered++;
    }
    if (answered < commands.length) {
      throw new Error(`nf_tables answered ${answered} of ${commands.length} commands`);
    }
  }

  /** All objects of one kind (a GET command) in `family`; 0 is every family. Each is handed over as its attributes' bytes. */
  dump(command: number, family: number, visit: (family: number, attributes: Buffer) => void): void {
    const writer = new NetlinkWriter();
    const sequence = ++this.#sequence;
    writer.message(typeOf(command), NLM_F_REQUEST | NLM_F_DUMP, sequence, () => writer.raw(genericMessage(family, 0)));
    this.#send(writer.bytes);
    for (const message of this.#receiveAll()) {
      if (message.sequence !== sequence) continue;
      const outcome = outcomeOf(message);
      if (outcome === "end") return;
      if (outcome !== undefined) {
        if (outcome.errno !== 0) throw new SystemFault("nf_tables dump", outcome.errno);
        continue;
      }
      visit(message.body.readUInt8(0), message.body.subarray(GENERIC_MESSAGE_BYTES));
    }
  }

  /** Closes the socket; the kernel then removes every table that it owns. */
  close(): void {
    closeQuietly(this.#fd);
  }

  #send(bytes: Uint8Array): void {
    if (send(this.#fd, bytes) < 0) throw new SystemFault("send", lastErrno(), "netlink");
  }

  /** The messages that are there now, until nothing is left: a dump continues itself while it is read. */
  *#receiveAll(): Generator<NetlinkMessage> {
    for (;;) {
      const length = receive(this.#fd, this.#memory.address, RECEIVE_BYTES);
      if (length < 0) {
        const errno = lastErrno();
        if (errnoIsAgain(errno)) return;
        throw new SystemFault("recv", errno, "netlink");
      }
      yield* messagesIn(this.#memory.bytes.subarray(0, length));
    }
  }

  #discardAnswers(): void {
    while (receive(this.#fd, this.#memory.address, RECEIVE_BYTES) >= 0) {
      // What is left belongs to a transaction that has already failed.
    }
  }
}

function errnoIsAgain(errno: number): boolean {
  const EAGAIN = 11;
  return errno === EAGAIN;
}

function typeOf(command: number): number {
  return (SUBSYSTEM_NFTABLES << 8) | command;
}

function genericMessage(family: number, resource: number): Buffer {
  return Buffer.from([family, 0, resource >> 8, resource & 0xff]);
}
