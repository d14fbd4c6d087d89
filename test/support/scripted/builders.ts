/**
 * Builders of test data: messages octet by octet, so that a test controls exactly what is on the wire, and container facts
 * and views with defaults for everything that a test does not care about.
 */
import type { ContainerFact, EndpointFact, NetworkFact } from "../../../src/container/facts/fact.ts";
import { hashOf } from "../../../src/base/model/label-table.ts";
import {
  DockerNames,
  type ContainerLink,
  type VisibleNetwork,
} from "../../../src/container/names/docker/docker-names.ts";
import { NetworkNames } from "../../../src/container/names/docker/network-names.ts";
import { domainLabels } from "../../../src/base/model/server-text.ts";
import type { Route, Server, Upstreams, View } from "../../../src/base/model/view.ts";
import { folded, wireLabels } from "../../../src/base/dns/name.ts";
import { Client, type Dial } from "../../../src/query/client/client.ts";
import { Slots } from "../../../src/query/client/slots.ts";
import { QueryHistory } from "../../../src/query/history/query-history.ts";

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  DNAME: 39,
  OPT: 41,
  HIP: 55,
  HTTPS: 65,
  SPF: 99,
  ANY: 255,
} as const;

const CLASS_IN = 1;
/** The usual flags of a client: recursion desired. */
const RD = 0x0100;

export function u16(value: number): Buffer {
  return Buffer.of((value >> 8) & 0xff, value & 0xff);
}

/**
 * Wire format of a dotted name, with the terminating zero. Labels are not checked, so that broken names can be built,
 * too.
 */
export function aName(text: string): Buffer {
  const labels = text === "." || text === "" ? [] : text.replace(/\.$/, "").split(".");
  return Buffer.concat([...labels.map((label) => labelOctets(label)), Buffer.of(0)]);
}

function labelOctets(label: string): Buffer {
  return Buffer.from(String.fromCharCode(label.length) + label, "latin1");
}

/** A name that consists of a compression pointer. */
export function aPointer(target: number): Buffer {
  return u16(0xc000 | target);
}

export interface RecordParts {
  readonly owner?: string | Buffer;
  readonly type: number;
  readonly class?: number;
  readonly ttl?: number;
  readonly data?: Buffer;
  /** The record's data length field, if it is to be wrong. */
  readonly dataLength?: number;
}

export function aRecord(parts: RecordParts): Buffer {
  const { owner = ".", type, class: recordClass = CLASS_IN, ttl = 0, data = Buffer.alloc(0) } = parts;
  const ttlOctets = Buffer.alloc(4);
  ttlOctets.writeUInt32BE(ttl);
  return Buffer.concat([
    typeof owner === "string" ? aName(owner) : owner,
    u16(type),
    u16(recordClass),
    ttlOctets,
    u16(parts.dataLength ?? data.length),
    data,
  ]);
}

export interface OptParts {
  readonly udpSize?: number;
  readonly version?: number;
  readonly isDnssecOk?: boolean;
  /** Code and data of each option. */
  readonly options?: readonly (readonly [number, Buffer])[];
}

export function anOpt({ udpSize = 1232, version = 0, isDnssecOk = false, options = [] }: OptParts = {}): Buffer {
  const data = Buffer.concat(options.flatMap(([code, octets]) => [u16(code), u16(octets.length), octets]));
  return aRecord({ type: TYPE.OPT, class: udpSize, ttl: version * 0x10000 + (isDnssecOk ? 0x8000 : 0), data });
}

export interface QueryParts {
  readonly id?: number;
  readonly flags?: number;
  /** A dotted name, or the octets in its place. */
  readonly name?: string | Buffer;
  readonly type?: number;
  readonly class?: number;
  /** Octets in place of type and class, to break them. */
  readonly typeAndClass?: Buffer;
  readonly answers?: readonly Buffer[];
  readonly authorities?: readonly Buffer[];
  readonly additionals?: readonly Buffer[];
  readonly opt?: OptParts;
  /** Section counts of the header, if they are to be wrong. */
  readonly counts?: readonly [number, number, number, number];
  readonly tail?: Buffer;
}

export function aQuery(parts: QueryParts = {}): Buffer {
  const { id = 0x1234, flags = RD, name = "web", type = TYPE.A, answers = [], authorities = [] } = parts;
  const additionals = [...(parts.additionals ?? []), ...(parts.opt === undefined ? [] : [anOpt(parts.opt)])];
  const counts = parts.counts ?? [1, answers.length, authorities.length, additionals.length];
  return Buffer.concat([
    ...[id, flags, ...counts].map((value) => u16(value)),
    typeof name === "string" ? aName(name) : name,
    parts.typeAndClass ?? Buffer.concat([u16(type), u16(parts.class ?? CLASS_IN)]),
    ...answers,
    ...authorities,
    ...additionals,
    parts.tail ?? Buffer.alloc(0),
  ]);
}

/** An upstream server's reply to a query: the copied question, then these records. */
export function aReplyTo(query: Buffer, rcode = 0, answers: readonly Buffer[] = []): Buffer {
  const end = query.indexOf(0, 12) + 5;
  const header = Buffer.from(query.subarray(0, 12));
  header[2] = (header[2] ?? 0) | 0x80;
  header[3] = 0x80 | rcode;
  header.set(u16(answers.length), 6);
  header.fill(0, 8);
  return Buffer.concat([header, query.subarray(12, end), ...answers]);
}

interface MemberParts {
  readonly names: readonly string[];
  readonly ipv4?: string;
  readonly ipv6?: string;
}

export interface NetworkParts {
  readonly name?: string;
  readonly members?: readonly MemberParts[];
  /** `target:alias`, as the engine reports them. */
  readonly links?: readonly string[];
}

export function aNetwork({ name = "one", members = [], links = [] }: NetworkParts = {}): VisibleNetwork {
  const names = new NetworkNames(name);
  for (const [index, member] of members.entries())
    names.put(`container-${index}`, { ipv4: undefined, ipv6: undefined, ...member });
  const suffix = wireLabels(name);
  return { id: `id-of-${name}`, name, suffix, suffixFolded: suffix && folded(suffix), names, links: links.map(aLink) };
}

function aLink(text: string): ContainerLink {
  const [targetText = "", aliasText = ""] = text.split(":", 2);
  const alias = wireLabels(aliasText);
  const target = wireLabels(targetText.toLowerCase());
  return { alias, aliasFolded: alias && folded(alias), target, targetHash: target === undefined ? 0 : hashOf(target) };
}

export interface UpstreamParts {
  readonly servers?: readonly Server[];
  /** Longest suffix first. */
  readonly routes?: readonly Route[];
  readonly isNdotsSet?: boolean;
}

export function upstreams({ servers = [], routes = [], isNdotsSet = false }: UpstreamParts = {}): Upstreams {
  return { routes: [...routes, aRoute("", servers)], isNdotsSet };
}

/** Route for the names below a domain; without servers if it is local. */
export function aRoute(domain: string, servers: readonly Server[] | "local"): Route {
  const isLocal = servers === "local";
  return {
    suffix: domainLabels(domain),
    labelCount: domain === "" ? 0 : domain.split(".").length,
    servers: isLocal ? [] : servers,
    isLocal,
  };
}

export function aView(
  networks: readonly VisibleNetwork[] = [aNetwork()],
  upstreamServers: Upstreams = upstreams(),
): View {
  return { names: [new DockerNames(networks)], upstreams: upstreamServers };
}

export function aClient(
  view: View = aView(),
  dial: Dial = failingDial,
  history: QueryHistory = new QueryHistory(),
): Client {
  return new Client(view, dial, new Slots(), history);
}

function failingDial(): number {
  throw new Error("this test has no upstream servers");
}

export function anEndpoint(parts: Partial<EndpointFact> = {}): EndpointFact {
  const networkName = parts.networkName ?? "one";
  return {
    endpointId: "endpoint-1",
    networkId: `id-of-${networkName}`,
    networkName,
    names: ["web"],
    links: [],
    ipv4: "172.20.0.2",
    ipv6: undefined,
    ipv4Gateway: "192.0.2.1",
    ipv6Gateway: undefined,
    gatewayPriority: 0,
    ...parts,
  };
}

export function aContainer(parts: Partial<ContainerFact> = {}): ContainerFact {
  return {
    id: "c0ffee",
    name: "web",
    isPaused: false,
    health: undefined,
    pid: 4711,
    sandboxKey: "/var/run/docker/netns/c0ffee",
    networkMode: "one",
    hostname: "c0ffee",
    domainName: "",
    ports: { published: [], exposed: [], ofImage: [] },
    labels: {},
    imageLabels: { labels: {}, source: "known" },
    startedAt: "",
    resolvConfPath: undefined,
    kindSearch: undefined,
    extraHosts: [],
    nameservers: { kind: "listed", servers: [], isNdotsSet: false, isOwn: false },
    endpoints: [anEndpoint()],
    onDefaultBridge: undefined,
    ...parts,
  };
}

export function aNetworkFact(parts: Partial<NetworkFact> = {}): NetworkFact {
  const name = parts.name ?? "one";
  return {
    id: `id-of-${name}`,
    name,
    driver: "bridge",
    scope: "local",
    isInternal: false,
    project: undefined,
    ...parts,
  };
}
