/**
 * Trip: a flight with all who wait for it. It is one object, because there may be thousands in the air, and whatever is
 * alive when the collector comes is what everybody waits for.
 */
import type { Client } from "../client/client.ts";
import { type Key, keyHash } from "../cache/key.ts";
import type { Lane } from "../upstream/fleet.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import type { Delivery } from "./delivery.ts";
import { Flight } from "./flight.ts";
import type { FlightHooks, FlightPlan } from "./flight-plan.ts";

/** What is asked, for whom. */
export interface Errand {
  readonly client: Client;
  readonly lane: Lane;
  /** Servers of the lane that lead back to the client. */
  readonly leadingBack?: readonly Nameserver[];
  /** Undefined for a question of its own. */
  readonly key: Key | undefined;
  readonly waiting: Delivery[];
  /** The query that goes out, and where its question ends. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** What is kept for the key is asked for anew. */
  readonly isRefresh?: boolean;
}

export class Trip extends Flight {
  readonly errand: Errand;

  constructor(errand: Errand, plan: FlightPlan, hooks: FlightHooks) {
    super(plan, hooks);
    this.errand = errand;
  }
}

/** Under which what is asked is merged, and kept. */
export function keyOf({ deferred }: Delivery, { scope }: Lane): Key {
  const { name, nameHash, type, bits } = deferred;
  return { hash: keyHash(nameHash, type, bits, scope), name, type, bits, scope };
}

export function waitsSigned(waiting: readonly Delivery[]): boolean {
  return waiting.some(({ deferred }) => deferred.signature !== undefined);
}
