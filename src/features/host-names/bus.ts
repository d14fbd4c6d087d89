/**
 * Bus: a connection to the system bus of a host, with calls and signals. It is here, and not a program such as busctl,
 * because the image has no such program, and the host's cannot be run from there without more capabilities.
 */
import { type Socket, connect } from "node:net";

import { Fault } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { HOST_LIMITS } from "./limits.ts";
import {
  BUS_ERROR,
  BUS_REMEDY,
  BUS_RETURN,
  BUS_SIGNAL,
  type BusCall,
  type BusMessage,
  type BusReader,
  READ_BYTES_MAX,
  callBytes,
  isUnasked,
  malformed,
  messageLength,
  readMessage,
} from "./bus-message.ts";

/** The bus itself: the destination of calls, and the sender of what it says of its users. */
export const BUS_NAME = "org.freedesktop.DBus";
const BUS = { destination: BUS_NAME, path: "/org/freedesktop/DBus", interface: BUS_NAME };
const LINE_BYTES_MAX = 1024;

interface Waiter {
  readonly resolve: (body: BusReader) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

interface BusEvents {
  readonly onSignal: (message: BusMessage) => void;
  readonly onClose: () => void;
}

/** What the other side replied in place of a result: it is there, and said no. Its code is the error's name. */
export class BusErrorReply extends Fault {}

export class Bus {
  readonly #socket: Socket;
  readonly #events: BusEvents;
  readonly #waiters = new Map<number, Waiter>();
  #received = Buffer.alloc(0);
  /** So many bytes still belong to a message that is not read. */
  #skipped = 0;
  #isAuthenticated = false;
  #onAuthenticated: () => void = () => undefined;
  #serial = 0;
  #failure: Error | undefined;

  private constructor(path: string, events: BusEvents) {
    this.#events = events;
    this.#socket = connect({ path });
    this.#socket.unref();
    this.#socket.on("error", (error) => this.#end(unreachable(error)));
    this.#socket.on("close", () => this.#end(unreachable()));
    this.#socket.on("data", (chunk) => guard.run("elsewhere", 0, () => this.#receive(chunk)));
  }

  /** Connects as the user of this process, to the socket at `path`. Throws a Fault. */
  static async connect(path: string, events: BusEvents): Promise<Bus> {
    const bus = new Bus(path, events);
    try {
      await bus.#authenticate();
      await bus.callBus("Hello");
      return bus;
    } catch (error) {
      bus.close();
      throw error;
    }
  }

  /** Calls a method of the bus itself, with one text as its argument. */
  async callBus(member: string, text?: string): Promise<BusReader> {
    const argument =
      text === undefined ? {} : { signature: "s", write: (w: { string(t: string): void }) => w.string(text) };
    return await this.call({ ...BUS, member, ...argument });
  }

  /** The body of the reply. Throws a Fault: the error's name is its code. */
  async call(call: BusCall): Promise<BusReader> {
    return await this.#wait(++this.#serial, (serial) => this.#socket.write(callBytes(call, serial)));
  }

  close(): void {
    this.#end(new Fault("BUS", "The connection to the system bus is closed", { remedy: BUS_REMEDY }));
  }

  /** Only the user's own name is sent; the bus reads its number from the socket. */
  async #authenticate(): Promise<void> {
    const user = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
    await this.#wait(0, () => {
      this.#onAuthenticated = () => this.#settle(0)?.resolve(undefined as never);
      this.#socket.write(`\0AUTH EXTERNAL ${user}\r\n`);
    });
    this.#socket.write("BEGIN\r\n");
  }

  async #wait(serial: number, send: (serial: number) => void): Promise<BusReader> {
    return await new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      const timer = setTimeout(() => this.#end(unreachable(new Error("no reply"))), HOST_LIMITS.busMs).unref();
      this.#waiters.set(serial, { resolve, reject, timer });
      send(serial);
    });
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    try {
      if (!this.#isAuthenticated) this.#readLine();
      else this.#readMessages();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.#end(error);
    }
  }

  /** The bus says nothing more until BEGIN is sent. */
  #readLine(): void {
    const end = this.#received.indexOf("\r\n");
    if (end === -1 && this.#received.length < LINE_BYTES_MAX) return;
    if (!this.#received.subarray(0, 3).equals(Buffer.from("OK "))) throw unreachable(new Error("it refuses this user"));
    this.#received = this.#received.subarray(end + 2);
    this.#isAuthenticated = true;
    this.#onAuthenticated();
  }

  #readMessages(): void {
    for (;;) {
      const skipped = Math.min(this.#skipped, this.#received.length);
      this.#received = this.#received.subarray(skipped);
      this.#skipped -= skipped;
      const length = messageLength(this.#received);
      if (length === undefined) return;
      if (length > READ_BYTES_MAX) {
        if (!isUnasked(this.#received)) throw malformed();
        this.#skipped = length;
      } else if (length > this.#received.length) return;
      else {
        const bytes = this.#received.subarray(0, length);
        this.#received = this.#received.subarray(length);
        this.#read(bytes);
      }
    }
  }

  #read(bytes: Buffer): void {
    try {
      this.#deliver(readMessage(bytes));
    } catch (error) {
      if (!(error instanceof Fault && isUnasked(bytes))) throw error;
    }
  }

  #deliver(message: BusMessage): void {
    const { type, replySerial, error, body } = message;
    if (type === BUS_SIGNAL) this.#events.onSignal(message);
    if (type === BUS_RETURN) this.#settle(replySerial)?.resolve(body);
    if (type === BUS_ERROR) this.#settle(replySerial)?.reject(new BusErrorReply(error, textOf(body) ?? error));
  }

  #settle(serial: number): Waiter | undefined {
    const waiter = this.#waiters.get(serial);
    this.#waiters.delete(serial);
    clearTimeout(waiter?.timer);
    return waiter;
  }

  #end(failure: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#socket.destroy();
    for (const serial of this.#waiters.keys()) this.#settle(serial)?.reject(failure);
    this.#events.onClose();
  }
}

/** Most errors have one text. */
function textOf(body: BusReader): string | undefined {
  try {
    return body.string();
  } catch {
    return undefined;
  }
}

function unreachable(cause?: Error): Fault {
  return new Fault("BUS", "Cannot reach the system bus of this host", { cause, remedy: BUS_REMEDY });
}
