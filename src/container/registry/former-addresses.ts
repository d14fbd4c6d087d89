/**
 * FormerAddresses: addresses that containers have given up lately. A program that keeps the address of a name, and does not
 * query it again, still connects to one of them; no query fails then, so only this tells why. It also tells what a container
 * was called on a network that it has left, and whose name it is that a removed container had.
 */
import { LIMITS } from "../../base/limits.ts";
import { type ComposeService, composeServiceOf } from "../facts/compose.ts";
import { type ContainerFact, isUserDefined } from "../facts/fact.ts";

/** An address that a container had on a network until lately. */
export interface FormerAddress {
  readonly containerId: string;
  readonly container: string;
  readonly compose: ComposeService | undefined;
  readonly networkName: string;
  /** Lower case. */
  readonly names: readonly string[];
  /** Compose has connected it, not an operator. */
  readonly isComposed: boolean;
  readonly address: string;
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
}

/** Names that are kept of one container on one network: a creator may give it thousands. */
const NAMES_MAX = 16;

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
      const { networkId, networkName, isComposed = false } = endpoint;
      const names = endpoint.names.slice(0, NAMES_MAX).map((name) => name.toLowerCase());
      for (const address of addressesOf(endpoint)) {
        if (kept.has(`${networkId} ${address}`)) continue;
        const { id: containerId, name: container } = before;
        const place = { containerId, container, compose: composeServiceOf(before), networkName, names, isComposed };
        this.#all.push({ ...place, address, atMs: this.#now() });
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

export interface FormerName {
  readonly containerId: string;
  readonly name: string;
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
}

/**
 * Names that containers had until they were renamed. Docker forgets a name at once, on all networks, and who looks it up gets
 * NXDOMAIN: only this tells that its container still runs.
 */
export class FormerNames {
  readonly #now: () => number;
  /** The oldest first. */
  #all: readonly FormerName[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  note({ id: containerId, name }: ContainerFact, after: ContainerFact): void {
    if (name === after.name) return;
    this.#all = [...this.#all, { containerId, name, atMs: this.#now() }].slice(-LIMITS.formerNames);
  }

  /** The container is gone: it is not called anything any more. */
  forget(containerId: string): void {
    this.#all = this.#all.filter((each) => each.containerId !== containerId);
  }

  list(): readonly FormerName[] {
    return this.#all;
  }
}
