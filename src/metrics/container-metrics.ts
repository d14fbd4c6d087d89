/**
 * ContainerMetrics: counters of attaching (failures, repairs, event lag) and of each container's queries, also after it has
 * stopped. No counter ever decreases.
 */
import { LIMITS } from "../base/limits.ts";
import { Histogram } from "../base/lib/histogram.ts";

type State =
  | { readonly kind: "failed"; readonly code: string }
  | { readonly kind: "attached" | "closed" | "opening" | "verifying" };

const COUNTED = [
  "queries",
  "local",
  "kernel",
  "kernelCached",
  "cached",
  "forwarded",
  "malformed",
  "ignored",
  "unsent",
  "refused",
  "failed",
] as const;

type Counters = Readonly<Record<string, number>>;
type Totals = Record<(typeof COUNTED)[number], number>;

/** The series of all containers without their own. No container has this name: Docker's names begin with a letter or digit. */
const OTHERS = "(other)";

export class ContainerMetrics {
  readonly attachFailures = new Map<string, number>();
  /** Namespaces that are served again after a failure, by its code. */
  readonly repairs = new Map<string, number>();
  readonly eventLag = new Histogram(1);
  inspectFailures = 0;
  engineLosses = 0;
  readonly #failedWith = new Map<string, string>();
  readonly #live = new Map<Counters, string>();
  readonly #past = new Map<string, Totals>([[OTHERS, noTotals()]]);
  #containersMax: number;

  constructor(containersMax: number) {
    this.#containersMax = containersMax;
  }

  /** Sets the limit for new series. Existing ones stay, because a counter must not decrease. */
  setContainersMax(max: number): void {
    this.#containersMax = Math.min(max, LIMITS.meteredContainersMax);
  }

  get hasContainerSeries(): boolean {
    return this.#containersMax > 0;
  }

  /** Counts a change of state; returns whether the container is served again after a failure. */
  onState(containerId: string, state: State): boolean {
    switch (state.kind) {
      case "failed":
        count(this.attachFailures, state.code);
        this.#failedWith.set(containerId, state.code);
        break;
      case "attached": {
        const code = this.#failedWith.get(containerId);
        if (code !== undefined) count(this.repairs, code);
        return this.#failedWith.delete(containerId);
      }
      case "closed":
        this.#failedWith.delete(containerId);
        break;
      default:
    }
    return false;
  }

  /** Starts counting a container by its live counters. */
  startCounting(container: string, counters: Counters): void {
    this.#live.set(counters, this.#seriesFor(container));
  }

  /** Stops counting live counters, and adds them to the totals of their series. */
  stopCounting(counters: Counters): void {
    const series = this.#live.get(counters);
    if (series === undefined) return;
    this.#live.delete(counters);
    addTo(this.#past.get(series) as Totals, counters);
  }

  /** The totals of each series. */
  containers(): [string, Totals][] {
    const totals = new Map([...this.#past].map(([series, past]) => [series, { ...past }]));
    for (const [counters, series] of this.#live) addTo(totals.get(series) as Totals, counters);
    return [...totals].map(([series, sum]) => [series, sum]);
  }

  #seriesFor(container: string): string {
    if (this.#past.has(container)) return container;
    // The series of all others does not count.
    if (this.#past.size - 1 >= this.#containersMax && !this.#evictSeries()) return OTHERS;
    this.#past.set(container, noTotals());
    return container;
  }

  /** Adds the series of the container that stopped first to the series of all others. */
  #evictSeries(): boolean {
    if (this.#containersMax === 0) return false;
    const present = new Set(this.#live.values());
    for (const [series, past] of this.#past) {
      if (series === OTHERS || present.has(series)) continue;
      addTo(this.#past.get(OTHERS) as Totals, past);
      this.#past.delete(series);
      return this.#past.size - 1 < this.#containersMax;
    }
    return false;
  }
}

function noTotals(): Totals {
  return Object.fromEntries(COUNTED.map((name) => [name, 0])) as Totals;
}

function addTo(totals: Totals, counters: Counters): void {
  for (const name of COUNTED) totals[name] += counters[name] ?? 0;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
