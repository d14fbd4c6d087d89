// What is up and what is down at this moment, and so who owes a container an answer. Faults change it: before they harm
// something, and after they have healed it. Each change of who owes what is kept with its time, for judge.ts.

import { type Way, WAYS } from "./prober.ts";
import type { Duties, Duty } from "./judge.ts";
import { monotonicMs } from "./monotonic.ts";

// As much of a container as has to do with who answers it.
export type Asking = {
  // Why it is no fair witness: it is being restarted, for instance. Nothing when it runs and asks.
  readonly unsteady: string | undefined;
  // Its namespace is not older than this.
  readonly bornMs: number;
  // Docker's resolver has a socket in its namespace, and rules that lead there.
  readonly hasDockerResolver: boolean;
  readonly hasDockerRules: boolean;
  // Which life of dns11 was seen serving this namespace.
  readonly servedInLife: number | undefined;
};

export type Dns11State = "down" | "runs" | "stopped";

export class World {
  #isDockerdUp = true;
  #dns11: Dns11State = "down";
  #dns11SinceMs = monotonicMs();
  // How many processes of dns11 there have been.
  #life = 0;
  #shortage: string | undefined;
  readonly #ledgers = new Map<Asking, Readonly<Record<Way, DutyLedger>>>();

  get isDockerdUp(): boolean {
    return this.#isDockerdUp;
  }

  get life(): number {
    return this.#life;
  }

  setDockerd(isUp: boolean): void {
    this.#isDockerdUp = isUp;
    this.changed();
  }

  setDns11(state: Dns11State, isNewLife = false): void {
    if (isNewLife) this.#life++;
    this.#dns11 = state;
    this.#dns11SinceMs = monotonicMs();
    this.changed();
  }

  // Of what dns11 has too little, if of anything.
  setShortage(of: "descriptors" | "memory" | undefined): void {
    this.#shortage = of;
    this.changed();
  }

  add(asking: Asking): void {
    this.#ledgers.set(
      asking,
      ofEachWay((way) => new DutyLedger(this.#excuse(asking, way))),
    );
  }

  // To be called whenever something about who is asking has changed.
  changed(): void {
    for (const [asking, ledgers] of this.#ledgers) {
      for (const way of WAYS) ledgers[way].note(this.#excuse(asking, way));
    }
  }

  dutiesOf(asking: Asking): Duties {
    const ledgers = this.#ledgers.get(asking);
    return ofEachWay((way) => ledgers?.[way].duties() ?? []);
  }

  // Nothing where an answer is owed.
  #excuse(asking: Asking, way: Way): string | undefined {
    if (asking.unsteady !== undefined) return asking.unsteady;
    const isSilenced = this.#dns11 === "stopped" && asking.bornMs < this.#dns11SinceMs;
    if (isSilenced) return "dns11 was stopped (SIGSTOP)";
    const isServed = this.#dns11 === "runs" && asking.servedInLife === this.#life;
    // A connection takes a descriptor, and memory that the kernel charges to the process: it is refused or closed.
    const isShort = way === "tcp" && this.#shortage !== undefined && this.#dns11 === "runs";
    if (isShort) return `by TCP, and dns11 had no ${this.#shortage}`;
    if (this.#isDockerdUp && asking.hasDockerResolver && asking.hasDockerRules) return undefined;
    if (isServed) return undefined;
    const docker = !this.#isDockerdUp
      ? "dockerd was down"
      : asking.hasDockerRules
        ? "dockerd had made no resolver for it"
        : "the rules that lead to Docker's resolver were flushed";
    return `${docker}, and dns11 ${this.#dns11 === "runs" ? "had started since and did not serve it yet" : "too"}`;
  }
}

class DutyLedger {
  readonly #done: Duty[] = [];
  #fromMs = monotonicMs();
  #excuse: string | undefined;

  constructor(excuse: string | undefined) {
    this.#excuse = excuse;
  }

  note(excuse: string | undefined): void {
    if (excuse === this.#excuse) return;
    const now = monotonicMs();
    this.#done.push({ fromMs: this.#fromMs, toMs: now, excuse: this.#excuse });
    this.#fromMs = now;
    this.#excuse = excuse;
  }

  duties(): Duty[] {
    return [...this.#done, { fromMs: this.#fromMs, toMs: monotonicMs(), excuse: this.#excuse }];
  }
}

function ofEachWay<T>(of: (way: Way) => T): Record<Way, T> {
  return { fresh: of("fresh"), kept: of("kept"), tcp: of("tcp") };
}
