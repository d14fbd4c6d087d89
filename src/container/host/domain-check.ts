/**
 * DomainCheck: whether a domain is free for container names on this host. One that the search list completes names
 * with, or that a server of the host already knows (public DNS, a VPN, dnsmasq), would lose its own names.
 */
import { HEADER_BYTES, rcodeOf } from "../../base/dns/header.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { queryOf } from "../../base/dns/query.ts";
import { Fault } from "../../base/lib/fault.ts";
import { labelsOf } from "../../base/model/name-query.ts";
import { PASSTHROUGH_MARK } from "../namespace/dial.ts";
import { exchange } from "../rules/exchange.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import { HOST_LIMITS } from "./limits.ts";
import type { LinkDomain } from "./resolved/resolved-bus.ts";
import { isOwnLink } from "./resolved/tun-link.ts";

const DOMAIN_REMEDY = "Choose another domain with host-domain, such as docker or containers.internal, and reload.";
export const ZONE_REMEDY = "In containers the zone resolves. Choose another zone, or remove that domain, and reload.";

/** Throws a Fault if the search list uses the domain. */
export function requireOutsideSearch(domain: string, search: readonly string[]): void {
  const clash = search
    .map((each) => each.replace(/\.$/, "").toLowerCase())
    .find((each) => each === domain || each.endsWith(`.${domain}`));
  if (clash === undefined) return;
  throw new Fault("HOST_DOMAIN_TAKEN", `The search list of this host uses the domain "${clash}"`, {
    remedy: DOMAIN_REMEDY,
  });
}

/** Throws a Fault if another link of systemd-resolved, its configuration or a delegate of that has the domain. */
export function requireNoOtherLink(
  domain: string,
  domains: readonly LinkDomain[],
  links: ReadonlyMap<number, string>,
  remedy: string = DOMAIN_REMEDY,
): void {
  const owner = domains.find((each) => each.domain === domain && !isOwnLink(links.get(each.index)));
  if (owner === undefined) return;
  const place = placeOf(owner, links);
  throw new Fault("HOST_DOMAIN_TAKEN", `systemd-resolved already has the domain "${domain}": ${place}`, {
    remedy,
  });
}

function placeOf({ index, delegate }: LinkDomain, links: ReadonlyMap<number, string>): string {
  if (delegate !== undefined) return `its delegate ${delegate}`;
  return index === 0 ? "its configuration" : `its link ${links.get(index) ?? index}`;
}

/** Throws a Fault if one of the servers knows the domain. A server that does not reply knows nothing. */
export async function requireUnknown(
  domain: string,
  servers: readonly string[],
  within: Within,
  remedy: string = DOMAIN_REMEDY,
): Promise<void> {
  const message = (id: number): Buffer => queryOf({ labels: labelsOf(domain), type: TYPE.SOA, id });
  const request = { message, mark: PASSTHROUGH_MARK, protocols: ["udp"], waitMs: HOST_LIMITS.domainMs } as const;
  const asked = await Promise.all(
    servers.map(async (destination) => ({
      destination,
      replies: await exchange(within, { destination, ...request }).catch(() => []),
    })),
  );
  const owner = asked.find(({ replies }) => replies.some(({ reply }) => isKnown(reply)));
  if (owner === undefined) return;
  const { destination } = owner;
  throw new Fault(
    "HOST_DOMAIN_TAKEN",
    `The domain "${domain}" already exists: the server ${destination} answers for it`,
    { remedy },
  );
}

function isKnown(reply: Buffer | undefined): boolean {
  return reply !== undefined && reply.length >= HEADER_BYTES && rcodeOf(reply) === RCODE.NOERROR;
}
