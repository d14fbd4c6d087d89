/**
 * WayCounts: what is counted on a container's way: what failed, what was made good, how late the engine's news were, and
 * what each container asked, also after it has gone. Numbers that never fall.
 */
import { LIMITS } from "../base/limits.ts";
import { Histogram } from "../base/lib/histogram.ts";

/** As far as it is counted. */
type State =
  | { readonly kind: "failed"; readonly code: string }
  | { readonly kind: "attached" | "closed" | "opening" | "verifying" };

const COUNTED = [
  "queries",
  "local",
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

/** Whoever has no place of its own. No container is called like this: Docker's names begin with a letter or a digit. */
const OTHERS = "(other)";

export class ContainerMetrics {
  readonly attachFailures = new Map<string, number>();
  /** Namespaces that are served again, by what they had failed with. */
  readonly repairs = new Map<string, number>();
  readonly eventLag = new Histogram(1);
  inspectFailures = 0;
  engineLosses = 0;
  readonly #failedWith = new Map<string, string>();
  readonly #serving = new Map<Counters, string>();
  readonly #past = new Map<string, Totals>([[OTHERS, noTotals()]]);
  #containersMax: number;

  constructor(containersMax: number) {
    this.#containersMax = containersMax;
  }

  /** From now on; whoever has a place keeps it, because a number may not fall. */
  setContainersMax(max: number): void {
    this.#containersMax = Math.min(max, LIMITS.meteredContainersMax);
  }

  get hasContainerSeries(): boolean {
    return this.#containersMax > 0;
  }

  /** Whether it is served again after it had failed. */
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

  /** Somebody is served: these counters grow from now on. */
  startCounting(container: string, counters: Counters): void {
    this.#serving.set(counters, this.#placeFor(container));
  }

  /** They grow no longer. */
  stopCounting(counters: Counters): void {
    const place = this.#serving.get(counters);
    if (place === undefined) return;
    this.#serving.delete(counters);
    addTo(this.#past.get(place) as Totals, counters);
  }

  /** What each container has asked so far; those without a place of their own together. */
  containers(): [string, Totals][] {
    const totals = new Map([...this.#past].map(([place, past]) => [place, { ...past }]));
    for (const [counters, place] of this.#serving) addTo(totals.get(place) as Totals, counters);
    return [...totals].map(([place, sum]) => [place, sum]);
  }

  #placeFor(container: string): string {
    if (this.#past.has(container)) return container;
    // Beside the place for all others.
    if (this.#past.size - 1 >= this.#containersMax && !this.#makeRoom()) return OTHERS;
    this.#past.set(container, noTotals());
    return container;
  }

  /** Who has gone for longest gives its place up; what it asked is counted among the others'. */
  #makeRoom(): boolean {
    if (this.#containersMax === 0) return false;
    const present = new Set(this.#serving.values());
    for (const [place, past] of this.#past) {
      if (place === OTHERS || present.has(place)) continue;
      addTo(this.#past.get(OTHERS) as Totals, past);
      this.#past.delete(place);
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
