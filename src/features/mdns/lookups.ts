/**
 * Lookups: names in local that are being looked up, each once however many ask, for both families at the same time: so a name that
 * has one of them alone exists, and nobody waits until the program gives the other one up.
 */
import { guard } from "../../base/lib/guard.ts";
import { isHostScoped, unmapped } from "../../base/model/address.ts";
import {
  AVAHI,
  type Away,
  type Announced,
  type Daemon,
  type DaemonAnswer,
  type Family,
  RESOLVED,
  ask,
  textOf,
} from "./daemons.ts";
import type { MdnsMeans } from "./feature.ts";
import { MDNS_LIMITS } from "./limits.ts";

/** What a name has of one family; "absent": nobody has announced the name. */
export type LookedUp = readonly Uint8Array[] | "absent" | "failed";

type OnLookedUp = (result: LookedUp) => void;

export type Asked = { readonly by: Daemon["name"] } | { readonly by: null; readonly away: readonly Away[] };

interface LookupParts {
  /** The folder that is the root of the engine's host. */
  readonly root: () => number;
  readonly means: () => MdnsMeans;
  /** Whether an address may be one of the local network's, and was announced there: on no link of Docker's. */
  readonly isOfLan: (announced: Announced) => boolean;
  /** The program that has said something, or why none could. */
  readonly onAsked: (asked: Asked) => void;
}

/** What a name of the local network is made of. Nothing else is sent to a program, for which a line end begins another command. */
const NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+local$/;

export function isLanName(name: string): boolean {
  return name.length <= 253 && NAME.test(name);
}

export function daemonsFor(means: MdnsMeans): readonly Daemon[] {
  if (means === "off") return [];
  if (means === "avahi") return [AVAHI];
  return means === "resolved" ? [RESOLVED] : [AVAHI, RESOLVED];
}

export class Lookups {
  readonly #parts: LookupParts;
  readonly #running = new Map<string, Lookup>();

  constructor(parts: LookupParts) {
    this.#parts = parts;
  }

  find(name: string, family: Family, onLookedUp: OnLookedUp): void {
    const running = this.#running.get(name);
    if (running !== undefined) return running.add(family, onLookedUp);
    if (this.#running.size >= MDNS_LIMITS.lookups) return onLookedUp("failed");
    const lookup = new Lookup(name, this.#parts, () => this.#running.delete(name));
    this.#running.set(name, lookup);
    lookup.add(family, onLookedUp);
  }

  close(): void {
    for (const lookup of this.#running.values()) lookup.end();
  }
}

/** One name. Each program in turn is asked for both families, until one of them speaks mDNS. */
class Lookup {
  readonly #name: string;
  readonly #parts: LookupParts;
  readonly #onEnd: () => void;
  readonly #waiters: { readonly family: Family; readonly onLookedUp: OnLookedUp }[] = [];
  readonly #answers = new Map<Family, DaemonAnswer>();
  readonly #daemons: readonly Daemon[];
  /** What those before said, in whose place another one is asked. */
  readonly #away: Away[] = [];
  #cancels: (() => void)[] = [];
  #timer: NodeJS.Timeout;
  #isDone = false;

  constructor(name: string, parts: LookupParts, onEnd: () => void) {
    this.#name = name;
    this.#parts = parts;
    this.#onEnd = onEnd;
    this.#daemons = daemonsFor(parts.means());
    this.#timer = this.#endAfter(MDNS_LIMITS.lookupMs);
    this.#ask(0);
  }

  add(family: Family, onLookedUp: OnLookedUp): void {
    const answer = this.#answers.get(family);
    if (answer?.kind === "found") onLookedUp(this.#resultOf(family));
    else if (this.#waiters.length < MDNS_LIMITS.waiters) this.#waiters.push({ family, onLookedUp });
  }

  end(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer);
    for (const cancel of this.#cancels) cancel();
    this.#onEnd();
    for (const { family, onLookedUp } of this.#waiters.splice(0)) onLookedUp(this.#resultOf(family));
  }

  #endAfter(ms: number): NodeJS.Timeout {
    return setTimeout(() => guard.run("timer", 0, () => this.end()), ms);
  }

  #ask(index: number): void {
    const daemon = this.#daemons[index];
    if (daemon === undefined) return;
    this.#answers.clear();
    const families: readonly Family[] = [4, 6];
    this.#cancels = families.map((family) =>
      ask(daemon, this.#parts.root(), this.#name, family, (answer) => this.#take(index, family, answer)),
    );
  }

  #take(index: number, family: Family, answer: DaemonAnswer): void {
    const daemon = this.#daemons[index];
    if (daemon === undefined || this.#isDone) return;
    const isLast = index === this.#daemons.length - 1;
    if (answer.kind === "away" && !isLast) {
      this.#away.push(answer);
      for (const cancel of this.#cancels) cancel();
      return this.#ask(index + 1);
    }
    const { onAsked } = this.#parts;
    onAsked(answer.kind === "away" ? { by: null, away: [...this.#away, answer] } : { by: daemon.name });
    const known = this.#isOfLan(answer);
    this.#answers.set(family, known);
    if (this.#answers.size === 2) return this.end();
    if (known.kind !== "found") return;
    const waiting = this.#waiters.splice(0);
    this.#waiters.push(...waiting.filter((each) => each.family !== family));
    for (const each of waiting) if (each.family === family) each.onLookedUp(this.#resultOf(family));
    clearTimeout(this.#timer);
    this.#timer = this.#endAfter(MDNS_LIMITS.graceMs);
  }

  /** Without what cannot be an address of the local network. */
  #isOfLan(answer: DaemonAnswer): DaemonAnswer {
    if (answer.kind !== "found") return answer;
    const announced = answer.announced
      .slice(0, MDNS_LIMITS.addresses)
      .filter((each) => isOfOneMachine(each) && this.#parts.isOfLan(each));
    return announced.length === 0 ? { kind: "none" } : { kind: "found", announced };
  }

  #resultOf(family: Family): LookedUp {
    const own = this.#answers.get(family);
    if (own?.kind === "found") return own.announced.map(({ address }) => address);
    const answers = [...this.#answers.values()];
    if (answers.some(({ kind }) => kind === "found")) return [];
    return answers.some(({ kind }) => kind === "away") ? "failed" : "absent";
  }
}

/** The same machine whoever asks; no IPv4 address as one of IPv6, which nobody announces. */
function isOfOneMachine(announced: Announced): boolean {
  const { address } = announced;
  return unmapped(address).length === address.length && !isHostScoped(textOf(announced));
}
