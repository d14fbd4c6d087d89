import type { Cause } from "../../api/causes.ts";
import type { MdnsReport, Status } from "../../api/status.ts";
import { guard } from "../../base/lib/guard.ts";
import { reasonWithRemedy, Fault, codeOf } from "../../base/lib/fault.ts";
import {
  addressBytes,
  type AddressBlock,
  isInBlock,
  readAddressBlock,
  socketAddress,
} from "../../base/model/address.ts";
import type { Settings } from "../../config/settings.ts";
import { cause } from "../../control/causes/situation.ts";
import type { RouteLayer } from "../../container/registry/routes.ts";
import type { FailedName } from "../../control/situation/ports.ts";
import { type InterfaceAddress, RouteSocket } from "../../kernel/rtnetlink.ts";
import type { EngineCore, RunCore, Running } from "../contract.ts";
import { type Announced, type Away, isThere, missing, type Family } from "./daemons.ts";
import { type MdnsMeans, meansOf } from "./feature.ts";
import { MDNS_LIMITS } from "./limits.ts";
import { type Asked, Lookups, daemonsFor, type LookedUp, isLanName } from "./lookups.ts";
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { type Server as TcpServer, type Socket, createServer } from "node:net";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { CLASS } from "../../base/dns/record.ts";
import { UDP_BYTES_MIN } from "../../base/dns/header.ts";
import { StreamReader, withLength } from "../../base/lib/stream-reader.ts";
import { LIMITS } from "../../base/limits.ts";
import { DEFAULT_BEHAVIOUR } from "../../base/model/behaviour.ts";
import { bareName, presentation } from "../../base/dns/name.ts";
import { bindWaiting } from "../../container/namespace/sockets.ts";
import { AF_INET, SOCK_STREAM, bindTo, closeQuietly, listenOn, socket } from "../../kernel/libc.ts";
import { Question } from "../../query/wire/question.ts";
import { addressAnswer, failure, nameError, noData } from "../../query/wire/reply.ts";

const BY = "the setting mdns";
const DOMAIN = "local";
/** Links that Docker makes on its own, whose networks no container may be known to be on. */
const OF_DOCKER = new Set(["docker0", "docker_gwbridge"]);
const OWN_DOMAIN = "Where local is a domain of your own, name its server instead: dns: [host, /corp.local/10.0.0.53].";
const UNRESOLVED = "names of the local network do not resolve";
const INSTALL =
  "install avahi-daemon on this machine (apt-get install avahi-daemon), or set MulticastDNS=yes in /etc/systemd/resolved.conf and for the link (resolvectl mdns LINK yes)";

export function open(run: RunCore): Running {
  return new MdnsInRun(run);
}

interface Problem {
  readonly problem: string;
  readonly remedy: string;
}

/** What is Docker's own on the engine's host. */
interface OfDocker {
  readonly links: ReadonlySet<number>;
  readonly blocks: readonly AddressBlock[];
}

/** Names in local for containers, by a responder on the engine's host that asks a program there. */
class MdnsInRun implements Running {
  readonly #run: RunCore;
  readonly #lookups: Lookups;
  #means: MdnsMeans;
  #isStrict: boolean;
  /** Undefined inside of a KIND node. */
  #engine: EngineCore | undefined;
  #isStarted = false;
  #responder: Responder | undefined;
  /** The namespace that the responder is in. */
  #networkId: string | undefined;
  /** Why there is none. */
  #failure: Problem | undefined;
  #timer: NodeJS.Timeout | undefined;
  #asked: Asked | undefined;
  #ofDocker: OfDocker | undefined;
  #ofDockerMs = Number.NEGATIVE_INFINITY;

  constructor(run: RunCore) {
    this.#run = run;
    this.#means = meansOf(run.settings);
    this.#isStrict = !run.settings.behaviour.answersAllTypes;
    this.#lookups = new Lookups({
      root: () => this.#engine?.host().root ?? -1,
      means: () => this.#means,
      isOfLan: (announced) => this.#isOfLan(announced),
      onAsked: (asked) => this.#onAsked(asked),
    });
  }

  engine(engine: EngineCore): void {
    this.#engine = engine;
  }

  start(): void {
    this.#isStarted = true;
    if (this.#means !== "off") this.#openNow();
  }

  configure(settings: Settings): void {
    this.#isStrict = !settings.behaviour.answersAllTypes;
    const means = meansOf(settings);
    if (means === this.#means) return;
    this.#means = means;
    this.#asked = undefined;
    if (means === "off") this.#release();
    else if (this.#isStarted) this.#open();
  }

  engineConnected(): void {
    if (this.#networkId === undefined || this.#networkId === this.#engine?.host().networkId) return;
    this.#release();
    this.#openNow();
  }

  get domainServers(): RouteLayer | undefined {
    if (this.#means === "off" || this.#engine === undefined) return undefined;
    // Without a responder they go nowhere: whoever has asked for this setting does not have them sent to other servers.
    const servers =
      this.#responder === undefined ? [] : [{ from: "host", address: ADDRESS, port: this.#responder.port } as const];
    return [{ domains: [DOMAIN], servers, isLocal: servers.length === 0, by: BY }];
  }

  causeOf({ name: asked, route }: FailedName): Cause | undefined {
    const name = bareName(asked);
    if (this.#engine === undefined || this.#isStrict || !name.endsWith(`.${DOMAIN}`) || route === undefined)
      return undefined;
    if (route.by === BY) {
      const { problem, remedy } = this.#report ?? {};
      if (problem !== undefined)
        return cause("not-announced", `"${name}" is a name of the local network, and ${problem}`, {
          advice: remedy ?? "",
        });
      const sentence = `no machine of the local network announces "${name}": ${this.#asked?.by ?? "nobody"} has no answer to mDNS`;
      return cause("not-announced", sentence, {
        advice:
          "switch that machine on, or correct the name; mDNS does not pass routers, so both machines have to be on one network",
      });
    }
    // Servers that somebody has named for the domain know best.
    if (route.domain !== "." || this.#means !== "off") return undefined;
    const there = daemonsFor("auto").find((each) => isThere(each, this.#engine?.host().root ?? -1));
    const set = "set mdns: auto in the settings file, then dns11 reload";
    const advice = there === undefined ? `${INSTALL}, and ${set}` : set;
    const sentence = `names in local, such as "${name}", are announced by machines of the local network (mDNS), which dns11 does not ask (mdns: off)`;
    return cause("not-announced", sentence, { advice });
  }

  status(): Pick<Status, "mdns"> {
    return { mdns: this.#report ?? null };
  }

  close(): void {
    this.#isStarted = false;
    this.#release();
  }

  /** Undefined where it is off. */
  get #report(): MdnsReport | undefined {
    if (this.#means === "off" || this.#engine === undefined) return undefined;
    if (this.#failure !== undefined) return { by: null, ...this.#failure };
    const asked = this.#asked;
    if (asked !== undefined) return asked.by === null ? { by: null, ...problemOf(asked.away) } : asked;
    const { root } = this.#engine.host();
    const first = daemonsFor(this.#means).find((each) => isThere(each, root));
    if (first !== undefined) return { by: first.name };
    return { by: null, ...problemOf(daemonsFor(this.#means).map((each) => missing(each))) };
  }

  #open(): void {
    const engine = this.#engine;
    if (engine === undefined || this.#means === "off" || this.#responder !== undefined) return;
    clearTimeout(this.#timer);
    const { network, networkId } = engine.host();
    try {
      this.#responder = new Responder(engine.runner.within(network, bindResponder), this.#lookups);
      this.#networkId = networkId;
      this.#failure = undefined;
    } catch (error) {
      const problem = reasonWithRemedy(error);
      this.#failure = { problem, remedy: "The reason says what to change; dns11 tries again." };
      this.#run.onEvent({ reason: problem }, UNRESOLVED, "warn");
      this.#timer = setTimeout(() => guard.run("timer", 0, () => this.#openNow()), MDNS_LIMITS.openAgainMs).unref();
    }
  }

  /** Without other settings, after which all views are made again. */
  #openNow(): void {
    this.#open();
    this.#engine?.updateViews();
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#responder?.close();
    this.#lookups.close();
    this.#responder = undefined;
    this.#networkId = undefined;
    this.#failure = undefined;
  }

  #onAsked(asked: Asked): void {
    const before = this.#asked;
    this.#asked = asked;
    if (asked.by !== null || before?.by === null) return;
    this.#run.onEvent({ reason: problemOf(asked.away).problem }, UNRESOLVED, "warn");
  }

  /**
   * Containers can announce names to this machine as well, on Docker's links, and any machine can announce any address. What is
   * announced there, or is an address of a container, is not of the local network.
   */
  #isOfLan({ address, link }: Announced): boolean {
    const now = performance.now();
    if (this.#ofDocker === undefined || now - this.#ofDockerMs > MDNS_LIMITS.linksMs) {
      this.#ofDocker = this.#readOfDocker();
      this.#ofDockerMs = now;
    }
    const { links, blocks } = this.#ofDocker;
    return !links.has(link) && !blocks.some((block) => isInBlock(address, block));
  }

  #readOfDocker(): OfDocker {
    if (this.#engine === undefined) return { links: new Set(), blocks: [] };
    const { directory, host, memory, runner } = this.#engine;
    const networks = [...directory().networks()];
    const blocks = networks.flatMap(({ addressBlocks = [] }) =>
      addressBlocks.flatMap((text) => readAddressBlock(text) ?? []),
    );
    const names = new Set([...OF_DOCKER, ...networks.flatMap(({ bridge }) => bridge ?? [])]);
    const routes = runner.within(host().network, () => new RouteSocket(memory));
    try {
      const ofDocker = routes
        .addresses()
        .filter(({ label = "", address }) => names.has(label) || isIn(address, blocks));
      const links = new Set(ofDocker.map(({ index }) => index));
      return { links, blocks: [...blocks, ...ofDocker.flatMap((each) => blockOf(each) ?? [])] };
    } finally {
      routes.close();
    }
  }
}

/** One that runs and cannot answer is what to see to; else any does. */
function problemOf(away: readonly Away[]): Problem {
  const problem = away.map((each) => each.problem).join(", and ");
  const remedy = away.find((each) => each.remedy !== undefined)?.remedy ?? `${capital(INSTALL)}. ${OWN_DOMAIN}`;
  return { problem, remedy };
}

function isIn(address: string, blocks: readonly AddressBlock[]): boolean {
  const bytes = addressBytes(address);
  return bytes !== undefined && blocks.some((block) => isInBlock(bytes, block));
}

/** The addresses of its link. */
function blockOf({ address, prefixLength }: InterfaceAddress): AddressBlock | undefined {
  const bytes = addressBytes(address)?.map(
    (byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, prefixLength - 8 * at))),
  );
  return bytes === undefined ? undefined : { bytes, prefix: prefixLength };
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

const ADDRESS = "127.0.0.1";
const PORT_TRIES = 16;
/** Room for every reply: all addresses of a name, in the longest name there is. */
const BLOCK_BYTES = LIMITS.udpQueryBytes + 1024;
const FAMILIES: ReadonlyMap<number, Family> = new Map([
  [TYPE.A, 4],
  [TYPE.AAAA, 6],
]);
const inOrder = (count: number): Uint16Array => Uint16Array.from({ length: count }, (_, index) => index);

interface Bound {
  readonly udp: number;
  readonly tcp: number;
  readonly port: number;
}

type Find = Pick<Lookups, "find">;

/**
 * A small DNS server for names in local, at a port of the engine's host that the kernel chooses and only that host
 * reaches. So the forwarder asks the local network as it asks any server, with its cache, limits and time budget.
 */
class Responder {
  readonly port: number;
  readonly #lookups: Find;
  readonly #udp: UdpSocket;
  readonly #tcp: TcpServer;
  readonly #streams = new Set<Socket>();
  #isClosed = false;

  /** Takes ownership of the sockets. */
  constructor({ udp, tcp, port }: Bound, lookups: Find) {
    this.port = port;
    this.#lookups = lookups;
    this.#udp = createSocket("udp4");
    this.#udp.on("message", (message, from) => guard.run("udp", 0, () => this.#answerPacket(message, from)));
    this.#udp.on("error", () => undefined);
    this.#udp.bind({ fd: udp });
    this.#tcp = createServer((stream) => guard.run("tcp", 0, () => this.#accept(stream)));
    this.#tcp.maxConnections = MDNS_LIMITS.streams;
    this.#tcp.on("error", () => undefined);
    this.#tcp.listen({ fd: tcp });
    for (const each of [this.#udp, this.#tcp]) each.unref();
  }

  close(): void {
    this.#isClosed = true;
    this.#udp.close();
    this.#tcp.close();
    for (const stream of this.#streams) stream.destroy();
  }

  #answerPacket(message: Buffer, { port, address }: RemoteInfo): void {
    answer(message, UDP_BYTES_MIN, this.#lookups, (reply) => {
      if (!this.#isClosed) this.#udp.send(reply, port, address, () => undefined);
    });
  }

  #accept(stream: Socket): void {
    const reader = new StreamReader();
    this.#streams.add(stream);
    stream.unref();
    stream.setTimeout(MDNS_LIMITS.streamIdleMs, () => stream.destroy());
    stream.on("error", () => undefined);
    stream.on("close", () => this.#streams.delete(stream));
    stream.on("data", (chunk) =>
      guard.run("tcp", 0, () => {
        reader.push(chunk);
        for (let message = reader.next(); message !== undefined; message = reader.next()) {
          answer(Buffer.from(message), LIMITS.udpQueryBytes, this.#lookups, (reply) => {
            if (!stream.destroyed) stream.write(withLength(reply));
          });
        }
      }),
    );
  }
}

/** Binds both sockets to one port. Call inside the namespace of the engine's host. */
function bindResponder(): Bound {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const { udp, listening } = bindWaiting(ADDRESS);
    const tcp = socket(AF_INET, SOCK_STREAM);
    try {
      bindTo(tcp, socketAddress(addressBytes(ADDRESS) as Uint8Array, listening.udpPort), ADDRESS);
      listenOn(tcp, MDNS_LIMITS.streams);
      return { udp, tcp, port: listening.udpPort };
    } catch (error) {
      for (const fd of [udp, tcp]) closeQuietly(fd);
      if (codeOf(error) !== "EADDRINUSE") throw error;
    }
  }
  throw new Fault("NO_PORT", "No port of 127.0.0.1 is free for both UDP and TCP", {
    remedy: "Find the program that has opened so many on this machine: ss -lnp src 127.0.0.1",
  });
}

/** Answers a query; what is none gets no reply. The bytes of `message` may be used meanwhile. */
export function answer(message: Buffer, limit: number, lookups: Find, respond: (reply: Buffer) => void): void {
  if (message.length > LIMITS.udpQueryBytes) return;
  const block = Buffer.alloc(BLOCK_BYTES);
  message.copy(block);
  const question = new Question(true);
  if (question.read(block, 0, message.length) !== "answer") return;
  const name = presentation(question.folded, 0, question.foldedLength);
  const family = FAMILIES.get(question.type);
  const reply = (length: number): void => respond(block.subarray(0, length));
  if (question.class !== CLASS.IN || family === undefined)
    return reply(noData(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds));
  if (!isLanName(name)) return reply(nameError(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds));
  lookups.find(name, family, (found) => reply(write(block, question, family, found, limit)));
}

function write(block: Buffer, question: Question, family: Family, found: LookedUp, limit: number): number {
  if (found === "failed") return failure(block, question, RCODE.SERVFAIL, DEFAULT_BEHAVIOUR);
  if (found === "absent") return nameError(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds);
  if (found.length === 0) return noData(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds);
  return addressAnswer(block, question, Buffer.concat(found), family === 4 ? 4 : 16, {
    limit,
    ttlSeconds: MDNS_LIMITS.ttlSeconds,
    isSorted: true,
    shuffle: inOrder,
    behaviour: DEFAULT_BEHAVIOUR,
  });
}
