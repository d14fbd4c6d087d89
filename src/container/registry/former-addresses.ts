/**
 * FormerAddresses: addresses that containers have given up lately. A program that keeps the address of a name, and does not
 * query it again, still connects to one of them; no query fails then, so only this tells why.
 */
import { LIMITS } from "../../base/limits.ts";
import type { FormerAddress } from "../../base/model/former-address.ts";
import { type ContainerFact, isUserDefined } from "../facts/fact.ts";

export class FormerAddresses {
  readonly #now: () => number;
  /** The oldest first. */
  #all: FormerAddress[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Stores the addresses of `before` that the container no longer has. */
  note(before: ContainerFact, after?: ContainerFact): void {
    const kept = new Set(after?.endpoints.flatMap((each) => addressesOf(each).map((at) => `${each.networkId} ${at}`)));
    for (const endpoint of before.endpoints) {
      if (!isUserDefined(endpoint.networkName)) continue;
      const { networkId, networkName } = endpoint;
      for (const address of addressesOf(endpoint)) {
        if (kept.has(`${networkId} ${address}`)) continue;
        this.#all.push({ container: before.name, networkName, address, atMs: this.#now() });
      }
    }
    if (this.#all.length > LIMITS.formerAddresses) this.#all = this.#all.slice(-LIMITS.formerAddresses);
  }

  list(): readonly FormerAddress[] {
    const oldestMs = this.#now() - LIMITS.formerAddressMs;
    this.#all = this.#all.filter(({ atMs }) => atMs >= oldestMs);
    return this.#all;
  }
}

function addressesOf({ ipv4, ipv6 }: ContainerFact["endpoints"][number]): string[] {
  return [ipv4, ipv6].flatMap((address) => address ?? []);
}
