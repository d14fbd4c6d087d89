/**
 * Own name: a test query for the container's own name, which only a resolver with Docker's names can answer. So the reply shows
 * whether a server resolves Docker's names, whichever program answers.
 */
import { isSameAddress } from "../../base/model/address.ts";
import type { Finding } from "../../base/model/finding.ts";
import { type AddressType, nameAnswer, nameQuery } from "../../base/model/name-query.ts";
import { type ExchangeResult, type SourcePorts, exchange } from "./exchange.ts";
import type { Within } from "../../kernel/net-namespace.ts";

/** The name to query, and the addresses of which one is expected. Without any, every reply is one. */
interface OwnName {
  readonly name: string;
  readonly addresses: readonly string[];
}

export interface OwnNameQuery {
  /** Of the check. */
  readonly code: string;
  /** The client as shown in the title of the finding. */
  readonly client: string;
  readonly servers: readonly string[];
  readonly within: Within;
  /** The packet mark, if any. */
  readonly mark?: number;
  /** Announces the queries to a running dns11. */
  readonly announce?: Announce | undefined;
  readonly remedy: string;
}

/** Announces queries by their source ports to a running dns11, so that they do not count as the container's. */
export type Announce = (ports: SourcePorts) => Promise<void>;

/** About as long as clients wait for a resolver. */
export const REPLY_TIMEOUT_MS = 3_000;

/** What an error of the kernel means for a query. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused: nothing listens there",
  EPERM: "a rule drops the packet (EPERM)",
};

/** A finding for each server and protocol. */
export async function queryOwnName({ name, addresses }: OwnName, query: OwnNameQuery): Promise<Finding[]> {
  const isOnlyIpv6 = addresses.length > 0 && addresses.every((address) => address.includes(":"));
  const type: AddressType = isOnlyIpv6 ? "AAAA" : "A";
  const { servers, within, mark, announce } = query;
  const all = await Promise.all(
    servers.map(async (destination) => {
      const message = (id: number): Buffer => nameQuery(name, type, id);
      const legs = await exchange(within, { destination, message, mark, announce, waitMs: REPLY_TIMEOUT_MS });
      return legs.map((leg) => findingOf(destination, leg, { name, addresses }, query));
    }),
  );
  return all.flat();
}

function findingOf(server: string, leg: ExchangeResult, { name, addresses }: OwnName, query: OwnNameQuery): Finding {
  const { protocol, id, reply, failure } = leg;
  const { code, remedy } = query;
  const what = `query from ${query.client} to ${server} (${protocol})`;
  const problem = (detail: string): Finding => ({ code, what, state: "problem", detail, remedy });
  if (failure !== undefined) return problem(FAILURES[failure] ?? failure);
  if (reply === undefined) return problem(`no reply within ${REPLY_TIMEOUT_MS / 1000} s`);
  const answer = nameAnswer(reply, id);
  if (answer === undefined) return problem("the reply is not a valid DNS message");
  if (addresses.length === 0)
    return { code, what, state: "ok", detail: "a reply; Docker has no name for the container" };
  if (typeof answer === "string")
    return problem(`${answer} for "${name}", its own name: the server does not know Docker's names`);
  const isOwn = answer.some((address) => addresses.some((own) => isSameAddress(own, address)));
  if (!isOwn) return problem(`"${name}" resolves to ${answer.join(", ") || "no address"}, not to its own address`);
  return { code, what, state: "ok", detail: `"${name}" resolves to ${answer.join(", ")}` };
}
