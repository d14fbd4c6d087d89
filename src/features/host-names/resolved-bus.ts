/**
 * ResolvedBus: systemd-resolved, as far as dns11 needs it: whether it runs, which domains its links have, and the
 * settings of one link. It tells when another process has become systemd-resolved, which knows nothing of before.
 */
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { BUS_NAME, Bus, BusErrorReply } from "./bus.ts";
import { type BusCall, type BusMessage, type BusReader, type BusWriter, malformed } from "./bus-message.ts";
import { addressBytes } from "../../base/model/address.ts";

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
