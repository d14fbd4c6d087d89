/**
 * Gateway: the members of a cluster as one server. A request goes to the member that replied last, and to the next one
 * where that fails. It has the token of the user, which is renewed when etcd refuses it.
 */
import { Fault } from "../base/lib/fault.ts";
import { ETCD_TOKEN, isEtcdFault, isMemberFault } from "./etcd-fault.ts";
import { Member, type MessageStream } from "./member.ts";

export interface GatewayOptions {
  readonly endpoints: readonly string[];
  /** The authority's certificates, in PEM. */
  readonly ca: string | undefined;
  readonly user: { readonly name: string; readonly password: string } | undefined;
}

export class Gateway {
  readonly members: readonly Member[];
  readonly #user: GatewayOptions["user"];
  #current = 0;
  #token: string | undefined;
  #renewal: Promise<void> | undefined;

  constructor({ endpoints, ca, user }: GatewayOptions) {
    this.members = endpoints.map((endpoint) => new Member(endpoint, ca));
    this.#user = user;
  }

  /** The member that requests go to. */
  get current(): Member {
    return this.members[this.#current] as Member;
  }

  /** This machine's address in the last connection to a member; undefined before the first. */
  get localAddress(): string | undefined {
    return this.current.localAddress;
  }

  /** Throws a Fault: the first one that is no reason to try another member, or that of the last member. */
  async call(path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    return await this.#withMembers(async () => await this.#onMember(path, body, signal), signal);
  }

  /** Sends a request to this member only. */
  async callOn(member: Member, path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    return await this.#renewing(async () => await member.call({ path, body, token: this.#token, signal }), signal);
  }

  /** Opens a stream on the current member; whoever reads it notices whether that works. */
  stream(path: string, body: object): MessageStream {
    return this.current.stream({ path, body, token: this.#token });
  }

  /** Gets a token, where there is a user; a stream needs it before it is opened. */
  async authenticate(signal?: AbortSignal): Promise<void> {
    if (this.#user !== undefined && this.#token === undefined)
      await this.#withMembers(async () => await this.#renew(), signal);
  }

  /** Asks the members that failed again, with a request that fails as long as they do: what is over is no fault. */
  async recheck(ask: (member: Member) => Promise<unknown>): Promise<void> {
    const failed = this.members.filter((member) => member !== this.current && member.fault !== undefined);
    await Promise.all(
      failed.map(async (member) => {
        try {
          await ask(member);
          member.fault = undefined;
        } catch (error) {
          if (error instanceof Fault) member.fault = error;
        }
      }),
    );
  }

  /** The token is not accepted any more. */
  dropToken(): void {
    this.#token = undefined;
  }

  /** Further requests go to the member after this one. */
  leave(member: Member): void {
    if (this.current === member) this.#current = (this.#current + 1) % this.members.length;
  }

  close(): void {
    for (const member of this.members) member.close();
  }

  async #withMembers<T>(act: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let tried = 1; ; tried++) {
      const member = this.current;
      try {
        const result = await act();
        member.fault = undefined;
        return result;
      } catch (error) {
        if (error instanceof Fault && signal?.aborted !== true) member.fault = error;
        if (!isMemberFault(error) || signal?.aborted === true || tried >= this.members.length) throw error;
        this.leave(member);
      }
    }
  }

  async #onMember(path: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    return await this.callOn(this.current, path, body, signal);
  }

  async #renewing<T>(act: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#user !== undefined && this.#token === undefined) await this.#renew();
    try {
      return await act();
    } catch (error) {
      if (!isEtcdFault(error, ETCD_TOKEN) || this.#user === undefined || signal?.aborted === true) throw error;
      await this.#renew();
      return await act();
    }
  }

  /** Many requests may find the token refused at once. */
  async #renew(): Promise<void> {
    this.#renewal ??= this.#authenticate().finally(() => (this.#renewal = undefined));
    await this.#renewal;
  }

  async #authenticate(): Promise<void> {
    this.#token = undefined;
    const body = { name: this.#user?.name, password: this.#user?.password };
    try {
      const reply = (await this.current.call({ path: "/v3/auth/authenticate", body })) as { readonly token?: unknown };
      if (typeof reply.token === "string") this.#token = reply.token;
    } catch (error) {
      // Users may be configured here before they are required there.
      if (!(error instanceof Fault) || !error.message.includes("authentication is not enabled")) throw error;
    }
  }
}
