/**
 * ServerText: how people write a nameserver and the domains it is for: on the command line, in the settings file and in
 * a label.
 *
 *   10.0.0.53   10.0.0.53:5353   10.0.0.53#5353   fd00::53   [fd00::53]:5353   fe80::1%eth0
 *   tls://10.0.0.53             over TLS and not otherwise (RFC 7858), at port 853; its certificate is for the address
 *   tls://10.0.0.53:8853#NAME   its certificate is for this host name
 *   host                        the host's own servers, as they are at the time
 *   container:10.0.0.53         queried from inside the container instead of from the host; in a label all are, unless
 *                               settings say otherwise; also container:tls://10.0.0.53
 *   container:NAME[@NETWORK]    a running container: see ContainerServer
 *   node:NAME                   the DNS servers of the cluster that the running container is a node of; for a domain only
 *   /corp.example/10.0.0.53     for names below corp.example; several domains: /one/two/10.0.0.53
 *   /corp.example/              such names exist in no upstream
 */
import { isIPv4, isIPv6 } from "node:net";
import { folded, wireLabels } from "../dns/name.ts";
import { isSameAddress } from "./address.ts";
import type { MissingServer, Server } from "./view.ts";

/** A server by its address, a container, or the host's own servers. */
export type NamedServer = Server | ContainerServer | "host";

/** One route: the servers for names below these domains; "" is the domain of every name. */
export interface RouteText {
  readonly domains: readonly string[];
  readonly servers: readonly NamedServer[];
  /** Such names exist in no upstream: they are denied locally. */
  readonly isLocal: boolean;
}

export const DNS_PORT = 53;
const PORT_MAX = 65535;
const FROM_CONTAINER = "container:";
const FROM_NODE = "node:";
const BY_TLS = "tls://";
const TLS_PORT = 853;
/** A host name in a certificate: it is not an address, nor a port that should follow a colon. */
const HOST_NAME = /^(?=.*[a-z])[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;
/** The longest name in a certificate, and in the greeting. */
const HOST_NAME_CHARS = 253;
/** The address at which dns11 itself listens: queried from inside a container, it would query itself. */
const OWN_ADDRESS = "127.0.0.11";
const LINK_LOCAL = /^fe[89ab][0-9a-f]:/i;
/** Characters of domain names; internationalized names are written in their xn-- form, as in queries. */
const DOMAIN = /^[\w.-]*$/;

/** Where a server without a prefix is queried from. */
type DialSide = "host" | "container";

/** Parses one server; throws an Error with a sentence for users. */
export function parseServer(text: string, side: DialSide = "host"): NamedServer {
  if (text === "host") return "host";
  if (text.startsWith(FROM_NODE)) return parseNode(text, side);
  const isMarked = text.startsWith(FROM_CONTAINER);
  const isInside = isMarked || side === "container";
  const container = isMarked ? containerIn(text.slice(FROM_CONTAINER.length)) : undefined;
  if (container !== undefined) return { ...container, port: readPort(text, container.port) };
  const rest = isMarked ? text.slice(FROM_CONTAINER.length) : text;
  const { address, port, tls } = rest.startsWith(BY_TLS) ? splitTls(text, rest.slice(BY_TLS.length)) : splitPort(rest);
  const [bare = "", zone] = address.split(/%(.*)/s, 2);
  const isAddress = zone === undefined ? isIPv4(bare) || isIPv6(bare) : isIPv6(bare) && /^[\w.-]+$/.test(zone);
  if (!isAddress) {
    throw new Error(
      tls === undefined
        ? `invalid nameserver "${text}": use "host", an IP address or ${CONTAINER_SERVER_FORM}, with :PORT or #PORT if it is not 53`
        : `invalid nameserver "${text}": use tls://ADDRESS[:PORT][#NAME]; a name instead of an address could not be looked up`,
    );
  }
  if (isInside && isSameAddress(bare, OWN_ADDRESS)) {
    throw new Error(`invalid nameserver "${text}": dns11 itself listens there`);
  }
  if (zone === undefined && LINK_LOCAL.test(bare)) {
    throw new Error(`invalid nameserver "${text}": a link-local address needs its interface, such as ${bare}%eth0`);
  }
  return { from: isInside ? "container" : "host", address, port, ...(tls !== undefined && { tls: tls || bare }) };
}

/** Parses `SERVER` or `/DOMAIN[/DOMAIN...]/[SERVER]`; throws an Error with a sentence for users. */
export function parseRoute(text: string, side: DialSide = "host"): RouteText {
  if (!text.startsWith("/")) {
    const server = parseServer(text, side);
    if (isNodeServer(server)) throw needsDomain(text);
    return { domains: [""], servers: [server], isLocal: false };
  }
  // No domain has a colon.
  const tlsAt = text.search(/\/(?:container:)?tls:\/\//);
  const parts = tlsAt < 0 ? text.slice(1).split("/") : text.slice(0, tlsAt).split("/").slice(1);
  const server = tlsAt < 0 ? (parts.pop() ?? "") : text.slice(tlsAt + 1);
  if (parts.length === 0) throw new Error(`invalid route "${text}": use /DOMAIN/SERVER`);
  const servers = server === "" ? [] : [parseServer(server, side)];
  const domains = parts.map((domain) => parseDomain(domain));
  if (domains.includes("") && servers.some(isNodeServer)) throw needsDomain(text);
  return { domains, servers, isLocal: server === "" };
}

function parseNode(text: string, side: DialSide): ContainerServer {
  const node = containerIn(text.slice(FROM_NODE.length));
  if (node === undefined || node.network !== undefined) {
    throw new Error(`invalid node "${text}": use ${NODE_SERVER_FORM}, such as node:kind-control-plane`);
  }
  if (side === "container") throw new Error(nodeInLabel(text));
  return { target: node.target, network: undefined, port: readPort(text, node.port), isNode: true };
}

/** A label may not name a node: the DNS servers of a cluster are queried from inside its node, wherever the container with the label is. */
export function nodeInLabel(text: string): string {
  return `invalid nameserver "${text}": a label cannot have a node asked; use the settings`;
}

export function isNodeServer(server: NamedServer): server is ContainerServer {
  return server !== "host" && isContainerServer(server) && server.isNode === true;
}

/** The servers of a cluster forward names that they do not know to the resolver that the query came from, which would be a loop. */
function needsDomain(text: string): Error {
  return new Error(
    `invalid route "${text}": a node is asked for the domain of its cluster only: /cluster.local/${NODE_SERVER_FORM}`,
  );
}

/**
 * A domain without leading and trailing dots, in lower case; throws an Error for an invalid one. "" and "." mean every
 * name.
 */
export function parseDomain(text: string): string {
  const domain = text
    .replace(/^\*?\./, "")
    .replace(/\.$/, "")
    .toLowerCase();
  if (!DOMAIN.test(domain) || (domain !== "" && wireLabels(domain) === undefined)) {
    throw new Error(`invalid domain name "${text}"`);
  }
  return domain;
}

/** The wire labels of a domain from `parseDomain`. */
export function domainLabels(domain: string): Uint8Array {
  return domain === "" ? new Uint8Array(0) : folded(wireLabels(domain) as Uint8Array);
}

/** Writes what `parseRoute` parses. */
export function routeText({ domains, servers, isLocal }: RouteText): string {
  const server = isLocal ? "" : servers.map((each) => namedServerText(each)).join(" ");
  const isForAll = domains.length === 1 && domains[0] === "" && !isLocal;
  return isForAll ? server : `/${domains.join("/")}/${server}`;
}

/** Writes what `parseServer` parses. */
export function namedServerText(server: NamedServer): string {
  if (server === "host") return server;
  if (isContainerServer(server)) return containerServerText(server, DNS_PORT);
  return `${server.from === "container" ? FROM_CONTAINER : ""}${withPort(server)}`;
}

/**
 * A server of a view, as Docker writes it in a container's resolv.conf; of a container, with its name and the network:
 * `container:pihole@infra(172.18.0.2)`.
 */
export function serverText(server: Server): string {
  const { container } = server;
  const address = addressAndPort(server);
  if (server.from === "node") return `${FROM_NODE}${container?.name ?? ""}(${address})`;
  return container === undefined ? address : `${FROM_CONTAINER}${container.name}@${container.network}(${address})`;
}

function addressAndPort(server: Server): string {
  if (server.from === "docker") return server.address === "127.0.0.11" ? "docker" : `docker(${server.address})`;
  return server.from === "host" ? `host(${withPort(server)})` : withPort(server);
}

export function missingText({ server, reason }: MissingServer): string {
  return `${server} is not queried: ${reason}`;
}

/** Parses the servers that `serverText` wrote, several in one text, after the domain that they are for. */
export function serversIn(text: string): Server[] {
  const [, list = text] = /^\/[^/]*\/(.*)$/.exec(text) ?? [];
  return list.split(" ").flatMap((word): Server[] => {
    if (word === "docker") return [{ from: "docker", address: OWN_ADDRESS, port: DNS_PORT }];
    const [, node, inNode] = /^node:([^@(]+)\((.+)\)$/.exec(word) ?? [];
    if (node !== undefined) {
      const container = { name: node, network: "", startedAt: "" };
      return [{ from: "node", ...splitPort(inNode ?? ""), container }];
    }
    const [, name, network = "", behind] = /^container:([^@(]+)@([^(]+)\((.+)\)$/.exec(word) ?? [];
    const [, side, inside] = /^(host|docker)\((.+)\)$/.exec(behind ?? word) ?? [];
    const at = inside ?? behind ?? word;
    const { address, port, tls } = at.startsWith(BY_TLS) ? splitTls(word, at.slice(BY_TLS.length)) : splitPort(at);
    if (!isIPv4(address) && !isIPv6(address)) return [];
    const from = side === undefined ? "container" : side === "host" ? "host" : "docker";
    return [
      {
        from,
        address,
        port,
        ...(tls !== undefined && { tls: tls || withoutZone(address) }),
        ...(name !== undefined && { container: { name, network, startedAt: "" } }),
      },
    ];
  });
}

/** The port that is not written in the text. */
export function usualPort({ tls }: Pick<Server, "tls">): number {
  return tls === undefined ? DNS_PORT : TLS_PORT;
}

function withPort(server: Server): string {
  const { address, port, tls } = server;
  const isUsual = port === usualPort(server);
  if (tls === undefined && isUsual) return address;
  const endpoint = `${address.includes(":") ? `[${address}]` : address}${isUsual ? "" : `:${port}`}`;
  if (tls === undefined) return endpoint;
  return `${BY_TLS}${endpoint}${tls === withoutZone(address) ? "" : `#${tls}`}`;
}

function withoutZone(address: string): string {
  return address.replace(/%.*$/s, "");
}

interface SplitPort {
  readonly address: string;
  readonly port: number;
  /** The name that was given; "" without one; undefined without TLS. */
  readonly tls?: string;
}

/** `rest`: what follows `tls://`. What follows a # is always a name here. */
function splitTls(text: string, rest: string): SplitPort {
  const [where = "", name] = rest.split(/#(.*)/s, 2);
  const { address, port } = splitPort(where, TLS_PORT, text);
  if (name === undefined) return { address, port, tls: "" };
  const tls = name.replace(/\.$/, "").toLowerCase();
  if (HOST_NAME.test(tls) && tls.length <= HOST_NAME_CHARS) return { address, port, tls };
  throw new Error(
    `invalid nameserver "${text}": use tls://ADDRESS[:PORT][#NAME] with the host name that is in its certificate, such as #dns.example.com`,
  );
}

/** `whole`: the text as it was written, for errors. */
function splitPort(text: string, usual = DNS_PORT, whole = text): SplitPort {
  const [, bracketed, afterBrackets] = /^\[([^\]]*)\](?::(\d+))?$/.exec(text) ?? [];
  if (bracketed !== undefined) return { address: bracketed, port: readPort(whole, afterBrackets, usual) };
  const [, beforeHash, afterHash] = /^(.+)#(\d+)$/.exec(text) ?? [];
  if (beforeHash !== undefined) return { address: beforeHash, port: readPort(whole, afterHash) };
  const [, beforeColon, afterColon] = /^([^:]+):(\d+)$/.exec(text) ?? [];
  if (beforeColon !== undefined) return { address: beforeColon, port: readPort(whole, afterColon) };
  return { address: text, port: usual };
}

function readPort(text: string, port: string | undefined, usual = DNS_PORT): number {
  if (port === undefined) return usual;
  const number = Number(port);
  if (number < 1 || number > PORT_MAX) throw new Error(`invalid port in "${text}": use 1 to ${PORT_MAX}`);
  return number;
}

/** Routes from the settings, in addition to what Docker would use. */
export interface RouteRules {
  readonly everyone: readonly RouteText[];
  /** The key is the name of the network. */
  readonly networks: ReadonlyMap<string, readonly RouteText[]>;
}

export const NO_RULES: RouteRules = { everyone: [], networks: new Map() };

/**
 * A running container as an upstream server. Where it is comes from the engine's state and never from
 * DNS, so that it can be the server of the very names that lead to it.
 *
 *   container:pihole           the container, on the first network where it can be queried
 *   container:pihole@infra     on that network only
 *   container:pihole:5353      at another port; also with #5353
 *   node:kind-control-plane    not the container, but the DNS servers of the cluster that it is a node of, queried from inside it
 */
export interface ContainerServer {
  /** The name of the container. */
  readonly target: string;
  readonly network: string | undefined;
  readonly port: number;
  /** It is on a network of the container that queries, and is used only because a label asks for it. */
  readonly isShared?: true;
  /** It is a node: the DNS servers of its cluster are queried from inside it. */
  readonly isNode?: true;
}

/** The form that errors tell people to use. */
const CONTAINER_SERVER_FORM = "container:NAME[@NETWORK]";
const NODE_SERVER_FORM = "node:NAME";

/** Names as Docker allows them. One of digits and dots alone is a mistyped address, and "host" is a word of its own. */
const FORM = /^(?!(?:[\d.]+|host)(?:[:#@]|$))([a-zA-Z0-9][\w.-]*)(?:@([a-zA-Z0-9][\w.-]*))?(?:[:#](\d+))?$/;

export function isContainerServer(server: object | string): server is ContainerServer {
  return typeof server === "object" && "target" in server;
}

/** Parses what follows `container:`, with the port as text; undefined if it is not a container. */
function containerIn(
  text: string,
): { readonly target: string; readonly network: string | undefined; readonly port: string | undefined } | undefined {
  const [, target, network, port] = FORM.exec(text) ?? [];
  return target === undefined ? undefined : { target, network, port };
}

/** Writes what `parseServer` parses; without the port if it is the usual one. */
function containerServerText(server: ContainerServer, usual: number): string {
  const { target, network, port, isNode } = server;
  const suffix = network === undefined ? "" : `@${network}`;
  return `${isNode === true ? "node" : "container"}:${target}${suffix}${port === usual ? "" : `:${port}`}`;
}
