/**
 * PolicyHold: policies on a running dns11, from the client's side. When dns11 is replaced or starts again the connection breaks: until
 * the policies are in force again, what they are for is closed.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { Fault, codeOf } from "../base/lib/fault.ts";
import type { LeaseConnection } from "./lease-connection.ts";
import type { PolicyLeaseRequest } from "./policies.ts";

const AGAIN_MS = 250;
/** A replacement, or a start of the service, takes less. */
const AGAIN_FOR_MS = 60_000;

export class PolicyHold {
  readonly #open: () => Promise<LeaseConnection>;
  #request: PolicyLeaseRequest;
  #connection: LeaseConnection;
  #names: readonly string[];
  #isEnded = false;
  /** Resolves when it is not in force any more; fails if that was nobody's wish. */
  readonly ended: Promise<void>;
  /** Called when the connection has broken, and when the policies are in force again. */
  onChange: (isInForce: boolean) => void = () => undefined;

  private constructor(
    open: () => Promise<LeaseConnection>,
    request: PolicyLeaseRequest,
    connection: LeaseConnection,
    names: readonly string[],
  ) {
    this.#open = open;
    this.#request = request;
    this.#connection = connection;
    this.#names = names;
    this.ended = this.#keep();
    this.ended.catch(() => undefined);
  }

  /** Resolves when they are in force. */
  static async start(open: () => Promise<LeaseConnection>, request: PolicyLeaseRequest): Promise<PolicyHold> {
    const connection = await open();
    try {
      return new PolicyHold(open, request, connection, await sent(connection, request));
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** The names of the policies. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Puts these in place of those before, or only changes what their end leaves; resolves when it is in force. */
  async change(request: PolicyLeaseRequest): Promise<void> {
    this.#request = { ...this.#request, ...request };
    this.#names = await sent(this.#connection, request);
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#connection.close();
  }

  async #keep(): Promise<void> {
    for (;;) {
      await this.#connection.ended;
      if (this.#isEnded) return;
      this.onChange(false);
      if (!(await this.#again())) return;
      this.onChange(true);
    }
  }

  /** Returns false if it was ended meanwhile. */
  async #again(): Promise<boolean> {
    const untilMs = performance.now() + AGAIN_FOR_MS;
    for (;;) {
      await sleep(AGAIN_MS);
      if (this.#isEnded) return false;
      try {
        this.#connection = await this.#open();
        this.#names = await sent(this.#connection, this.#request);
        if (!this.#isEnded) return true;
        await this.#connection.close();
        return false;
      } catch (error) {
        await this.#connection.close();
        if (this.#isEnded) return false;
        // Only a dns11 that is not there yet is waited for.
        const isAway = codeOf(error) === "NOT_RUNNING" || codeOf(error) === "LEASE_ENDED";
        if (!isAway || performance.now() > untilMs) throw error;
      }
    }
  }
}

async function sent(connection: LeaseConnection, request: PolicyLeaseRequest): Promise<readonly string[]> {
  const reply = await connection.send(request);
  if ("policies" in reply && reply.notHeld !== undefined)
    throw new Fault("POLICY_NOT_HELD", `The kernel does not hold ${reply.notHeld.join("; ")}`, {
      remedy: "dns11 policy says what to change; or let the policy filter names only (addresses: names).",
    });
  if (!("policies" in reply)) {
    throw new Fault("BAD_POLICY", "dns11 has answered something else", {
      remedy: "Use the client of its own release.",
    });
  }
  return reply.policies;
}
