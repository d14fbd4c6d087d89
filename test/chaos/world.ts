// State of a run: what is up and what is down, and so whether a container should get an answer. Faults change it before
// they cause harm and after they are healed. Each change is recorded with its time, for judge.ts.

import { type ProbeMode, PROBE_MODES } from "./prober.ts";
import type { AnswerSpans, AnswerSpan } from "./judge.ts";
import { monotonicMs } from "./monotonic.ts";

// The state of a container that decides who answers it.
export type ProbedContainer = {
  // Why its probes do not count, for instance because it is being restarted. Undefined while it runs and is probed.
  readonly unsteady: string | undefined;
  // Earliest time of its namespace.
  readonly bornMs: number;
  // Docker's resolver has a socket in its namespace, and rules that redirect to it.
  readonly hasDockerResolver: boolean;
  readonly hasDockerRules: boolean;
  // The last run of dns11 that served this namespace.
  readonly servedInLife: number | undefined;
};

export type Dns11State = "down" | "runs" | "stopped";

export class World {
  #isDockerdUp = true;
  #dns11: Dns11State = "down";
  #dns11SinceMs = monotonicMs();
  // Number of dns11 processes so far.
  #life = 0;
  #shortage: string | undefined;
  // When the engine was down, or dns11 did not run.
  readonly #unable: { fromMs: number; toMs: number }[] = [];
  readonly #logs = new Map<ProbedContainer, Readonly<Record<ProbeMode, SpanLog>>>();

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

  // The resource that dns11 is short of, if any.
  setShortage(of: "descriptors" | "memory" | undefined): void {
    this.#shortage = of;
    this.changed();
  }

  get unable(): readonly { readonly fromMs: number; readonly toMs: number }[] {
    return this.#unable;
  }

  add(container: ProbedContainer): void {
    this.#logs.set(
      container,
      perMode((mode) => new SpanLog(this.#excuseFor(container, mode))),
    );
  }

  // Call it when the state of a container has changed.
  changed(): void {
    const isUnable = !this.#isDockerdUp || this.#dns11 !== "runs";
    const last = this.#unable.at(-1);
    if (isUnable && last?.toMs !== Infinity) this.#unable.push({ fromMs: monotonicMs(), toMs: Infinity });
    if (!isUnable && last?.toMs === Infinity) last.toMs = monotonicMs();
    for (const [container, logs] of this.#logs) {
      for (const mode of PROBE_MODES) logs[mode].note(this.#excuseFor(container, mode));
    }
  }

  answerSpansOf(container: ProbedContainer): AnswerSpans {
    const logs = this.#logs.get(container);
    return perMode((mode) => logs?.[mode].answerSpans() ?? []);
  }

  // Undefined where an answer is expected.
  #excuseFor(container: ProbedContainer, mode: ProbeMode): string | undefined {
    if (container.unsteady !== undefined) return container.unsteady;
    const isSilenced = this.#dns11 === "stopped" && container.bornMs < this.#dns11SinceMs;
    if (isSilenced) return "dns11 was stopped (SIGSTOP)";
    const isServed = this.#dns11 === "runs" && container.servedInLife === this.#life;
    // A connection takes a descriptor and kernel memory charged to the process: dns11 refuses or closes it.
    const isShort = mode === "tcp" && this.#shortage !== undefined && this.#dns11 === "runs";
    if (isShort) return `by TCP, and dns11 had no ${this.#shortage}`;
    if (this.#isDockerdUp && container.hasDockerResolver && container.hasDockerRules) return undefined;
    if (isServed) return undefined;
    const docker = !this.#isDockerdUp
      ? "dockerd was down"
      : container.hasDockerRules
        ? "dockerd had made no resolver for it"
        : "the rules that redirect to Docker's resolver were flushed";
    return `${docker}, and dns11 ${this.#dns11 === "runs" ? "had started since and did not serve it yet" : "too"}`;
  }
}

class SpanLog {
  readonly #done: AnswerSpan[] = [];
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

  answerSpans(): AnswerSpan[] {
    return [...this.#done, { fromMs: this.#fromMs, toMs: monotonicMs(), excuse: this.#excuse }];
  }
}

function perMode<T>(of: (mode: ProbeMode) => T): Record<ProbeMode, T> {
  return { fresh: of("fresh"), reused: of("reused"), tcp: of("tcp") };
}
