/**
 * ResolvedBus: systemd-resolved, as far as dns11 needs it: whether it runs, which domains its links have, and the
 * settings of one link. It tells when another process has become systemd-resolved, which knows nothing of before.
 */
import { Fault, codeOf } from "../../base/lib/fault.ts";
import {
  type BusCall,
  type BusMessage,
  type BusReader,
  type BusWriter,
  malformed,
  BUS_ERROR,
  BUS_REMEDY,
  BUS_RETURN,
  BUS_SIGNAL,
  READ_BYTES_MAX,
  callBytes,
  isUnasked,
  messageLength,
  readMessage,
} from "./bus-message.ts";
import { addressBytes } from "../../base/model/address.ts";
import { type Socket, connect } from "node:net";
import { guard } from "../../base/lib/guard.ts";
import { HOST_LIMITS } from "./limits.ts";

/** The bus itself: the destination of calls, and the sender of what it says of its users. */
const BUS_NAME = "org.freedesktop.DBus";
/**
 * A connection to the system bus of a host, with calls and signals. It is here, and not a program such as busctl,
 * because the image has no such program, and the host's cannot be run from there without more capabilities.
 */
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

class Bus {
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

const NAME = "org.freedesktop.resolve1";
const OBJECT = { destination: NAME, path: "/org/freedesktop/resolve1" };
const MANAGER = "org.freedesktop.resolve1.Manager";
const PROPERTIES = "org.freedesktop.DBus.Properties";
const OWNER_CHANGED = "NameOwnerChanged";
const OWNERS_RULE = `type='signal',sender='${BUS_NAME}',member='${OWNER_CHANGED}',arg0='${NAME}'`;
/** Versions that are built without a protocol do as well without its method. */
const OPTIONAL = /^SetLink(?:LLMNR|MulticastDNS|DNSOverTLS|DNSSEC)$/;
/** Before it, in systemd 240, a link with a server was asked for every name. */
const DEFAULT_ROUTE = "SetLinkDefaultRoute";
const MISSING = /\.(?:UnknownMethod|NotSupported)$/;
const REFUSALS = new Set(["HOST_RESOLVED_REFUSED", "HOST_RESOLVED_OLD"]);
const NO_BUS = new Set(["ENOENT", "ECONNREFUSED", "ENOTDIR"]);
/** The numbers are those of sockets.h. */
const AF_INET = 2;

/** A domain of one link; index 0 is the configuration of systemd-resolved itself. */
export interface LinkDomain {
  readonly index: number;
  readonly domain: string;
  /** The delegate (systemd 258 and later) of the configuration that has the domain. */
  readonly delegate?: string;
}

export interface LinkSettings {
  readonly index: number;
  /** An IPv4 address, port 53. */
  readonly server: string;
  /** Queries for these names and those below them go to the server, and no others. */
  readonly domains: readonly string[];
}

interface Delegate {
  readonly id: string;
  readonly path: string;
}

export class ResolvedBus {
  readonly #socketPath: () => string;
  readonly #onStart: () => void;
  #bus: Promise<Bus> | undefined;
  #isClosed = false;

  /** `onStart`: another process has become systemd-resolved. */
  constructor(socketPath: () => string, onStart: () => void) {
    this.#socketPath = socketPath;
    this.#onStart = onStart;
  }

  /** Does not start it. Throws a Fault if there is a bus that cannot be used. */
  async isRunning(): Promise<boolean> {
    try {
      const bus = await this.#connected();
      return (await bus.callBus("NameHasOwner", NAME)).boolean();
    } catch (error) {
      if (error instanceof Fault && NO_BUS.has(codeOf(error.cause) ?? "")) return false;
      throw error;
    }
  }

  /** Reads those of its configuration, its delegates and its links. */
  async domains(): Promise<LinkDomain[]> {
    const body = await this.#property(OBJECT.path, MANAGER, "Domains", "a(isb)");
    const ofLinks = body.structs(() => ({ index: body.u32(), domain: domainIn(body) }));
    const delegates = await Promise.all((await this.#delegates()).map(async (each) => await this.#domainsOf(each)));
    return [...ofLinks, ...delegates.flat()];
  }

  /** The server last, so that at no time it gets queries for other names. */
  async setLink({ index, server, domains }: LinkSettings): Promise<void> {
    const set = async (member: string, type: string, write: (w: BusWriter) => void): Promise<void> => {
      await this.#set(member, `i${type}`, (w) => {
        w.u32(index);
        write(w);
      });
    };
    await set("SetLinkDomains", "a(sb)", (w) => w.structs(domains, (name) => (w.string(name), w.boolean(true))));
    await set(DEFAULT_ROUTE, "b", (w) => w.boolean(false));
    for (const member of ["SetLinkLLMNR", "SetLinkMulticastDNS", "SetLinkDNSOverTLS", "SetLinkDNSSEC"])
      await set(member, "s", (w) => w.string("no"));
    await set("SetLinkDNS", "a(iay)", (w) =>
      w.structs([addressBytes(server) as Uint8Array], (bytes) => (w.u32(AF_INET), w.data(bytes))),
    );
    await this.#set("FlushCaches");
  }

  close(): void {
    this.#isClosed = true;
    this.#bus?.then(
      (bus) => bus.close(),
      () => undefined,
    );
    this.#bus = undefined;
  }

  async #set(member: string, signature?: string, write?: (w: BusWriter) => void): Promise<void> {
    try {
      await this.#call({ interface: MANAGER, member, ...(signature && { signature }), ...(write && { write }) });
    } catch (error) {
      if (!(error instanceof BusErrorReply)) throw error;
      const isMissing = MISSING.test(error.code);
      if (isMissing && member === DEFAULT_ROUTE) throw tooOld();
      if (isMissing && OPTIONAL.test(member)) return;
      throw new Fault("HOST_RESOLVED_REFUSED", `systemd-resolved refused ${member}`, {
        cause: error,
        remedy: "Exclude links called dns11-* where systemd-networkd manages them, or use --host-names=capture.",
      });
    }
  }

  async #delegates(): Promise<Delegate[]> {
    try {
      const body = await this.#call({ interface: MANAGER, member: "ListDelegates" });
      return body.structs(() => ({ id: body.string(), path: body.string() }));
    } catch (error) {
      if (MISSING.test(codeOf(error) ?? "")) return [];
      throw error;
    }
  }

  async #domainsOf({ id, path }: Delegate): Promise<LinkDomain[]> {
    const body = await this.#property(path, "org.freedesktop.resolve1.DnsDelegate", "Domains", "a(sb)");
    return body.structs(() => ({ index: 0, domain: domainIn(body), delegate: id }));
  }

  async #property(path: string, of: string, name: string, type: string): Promise<BusReader> {
    const write = (w: BusWriter): void => [of, name].forEach((text) => w.string(text));
    const body = await this.#call({ path, interface: PROPERTIES, member: "Get", signature: "ss", write });
    if (body.signature() !== type) throw malformed();
    return body;
  }

  async #call(call: Omit<BusCall, "destination" | "path"> & { readonly path?: string }): Promise<BusReader> {
    return await (await this.#connected()).call({ ...OBJECT, ...call });
  }

  async #connected(): Promise<Bus> {
    if (this.#isClosed) throw new Fault("ENDED", "systemd-resolved is not asked any more");
    if (this.#bus === undefined) {
      // Whoever asks next connects again.
      const forget = (): void => {
        if (this.#bus === connecting) this.#bus = undefined;
      };
      const connecting = this.#connect(forget);
      connecting.catch(forget);
      this.#bus = connecting;
    }
    return await this.#bus;
  }

  async #connect(onClose: () => void): Promise<Bus> {
    const bus = await Bus.connect(this.#socketPath(), { onSignal: (message) => this.#onSignal(message), onClose });
    try {
      await bus.callBus("AddMatch", OWNERS_RULE);
      return bus;
    } catch (error) {
      bus.close();
      throw error;
    }
  }

  /** Its arguments are the name, the owner before and the owner now. Others than the bus can send signals of this name, too. */
  #onSignal({ member, sender, body }: BusMessage): void {
    if (member !== OWNER_CHANGED || sender !== BUS_NAME) return;
    const [name, , owner] = [body.string(), body.string(), body.string()];
    if (name === NAME && owner !== "") this.#onStart();
  }
}

/** Whether systemd-resolved, or the bus for it, has said no; otherwise it may not have been asked. */
export function isRefusal(error: unknown): boolean {
  return error instanceof BusErrorReply || REFUSALS.has(codeOf(error) ?? "");
}

/** The name, and whether it is for routing only, which does not matter here. */
function domainIn(body: BusReader): string {
  const domain = body.string();
  body.boolean();
  return domain.replace(/\.$/, "").toLowerCase();
}

function tooOld(): Fault {
  return new Fault(
    "HOST_RESOLVED_OLD",
    "systemd-resolved of this host is older than systemd 240, and would send every name to dns11",
    {
      remedy: "Upgrade systemd, or use --host-names=capture.",
    },
  );
}
