/**
 * Own name: a container's own name is what its resolver knows, and nobody else's does. So asking for it tells whether the
 * servers that are asked give Docker's names, whoever it is that answers.
 */
import { isSameAddress } from "../../base/model/address.ts";
import type { CheckCode, Finding } from "../../base/model/finding.ts";
import { type AddressType, nameAnswer, nameQuery } from "../../base/model/name-query.ts";
import { type ExchangeResult, type Within, exchange } from "../../container/rules/exchange.ts";

/** Who asks, for what, and what is right. */
export interface OwnName {
  readonly name: string;
  readonly addresses: readonly string[];
}

export interface OwnNameQuery {
  readonly code: CheckCode;
  /** Who asks, in the words that the findings begin with. */
  readonly client: string;
  readonly servers: readonly string[];
  readonly within: Within;
  /** What the packets carry, if anything. */
  readonly mark?: number;
  readonly remedy: string;
}

/** Whoever asks a resolver waits about so long. */
export const REPLY_TIMEOUT_MS = 3_000;

/** What the kernel's words mean for a query. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there (refused)",
  EPERM: "a rule drops it (EPERM)",
};

/** A finding for each server and protocol. */
export async function queryOwnName({ name, addresses }: OwnName, question: OwnNameQuery): Promise<Finding[]> {
  const type: AddressType = addresses.some((address) => !address.includes(":")) ? "A" : "AAAA";
  const { servers, within, mark } = question;
  const all = await Promise.all(
    servers.map(async (destination) => {
      const message = (id: number): Buffer => nameQuery(name, type, id);
      const legs = await exchange(within, { destination, message, mark, waitMs: REPLY_TIMEOUT_MS });
      return legs.map((leg) => findingOf(destination, leg, { name, addresses }, question));
    }),
  );
  return all.flat();
}

function findingOf(server: string, leg: ExchangeResult, { name, addresses }: OwnName, question: OwnNameQuery): Finding {
  const { protocol, id, reply, failure } = leg;
  const { code, remedy } = question;
  const what = `${question.client} asks ${server} by ${protocol}`;
  const problem = (detail: string): Finding => ({ code, what, state: "problem", detail, remedy });
  if (failure !== undefined) return problem(FAILURES[failure] ?? failure);
  if (reply === undefined) return problem("no answer");
  const answer = nameAnswer(reply, id);
  if (answer === undefined) return problem("what came back is no DNS reply");
  if (typeof answer === "string") return problem(`${answer} for "${name}", its own name: this is not Docker's names`);
  const isRight = answer.some((address) => addresses.some((own) => isSameAddress(own, address)));
  if (!isRight) return problem(`"${name}" is ${answer.join(", ") || "nothing"}, not itself`);
  return { code, what, state: "ok", detail: `"${name}" is ${answer.join(", ")}` };
}
