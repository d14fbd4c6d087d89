/**
 * Histogram: a distribution of durations, for a fixed number of series. Memory is allocated once and adding allocates
 * nothing, so it can be used for every packet.
 */

/** Upper bounds in seconds: from the time of one local answer to longer than any client waits. */
const TIME_BOUNDS: readonly number[] = Array.from({ length: 18 }, (_, index) => 0.0000625 * 2 ** index);

export interface Distribution {
  readonly bounds: readonly number[];
  /** Cumulative counts for each bound, and the total last. */
  readonly atMost: readonly number[];
  readonly sum: number;
}

export class Histogram {
  readonly bounds: readonly number[];
  readonly series: number;
  readonly #width: number;
  readonly #counts: Float64Array;
  readonly #sums: Float64Array;

  constructor(series: number, bounds: readonly number[] = TIME_BOUNDS) {
    this.bounds = bounds;
    this.series = series;
    this.#width = bounds.length + 1;
    this.#counts = new Float64Array(series * this.#width);
    this.#sums = new Float64Array(series);
  }

  /** The bucket of a value, for `addTo`. */
  bucketOf(value: number): number {
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket++;
    return bucket;
  }

  add(series: number, value: number): void {
    this.addTo(series, this.bucketOf(value), value);
  }

  /** Adds a value whose bucket is known. */
  addTo(series: number, bucket: number, value: number): void {
    const at = series * this.#width + bucket;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sums[series] = (this.#sums[series] as number) + value;
  }

  /** The distribution over several series together. */
  read(series: readonly number[]): Distribution {
    const atMost = Array.from({ length: this.#width }, () => 0);
    let sum = 0;
    for (const one of series) {
      let below = 0;
      for (let bucket = 0; bucket < this.#width; bucket++) {
        below += this.#counts[one * this.#width + bucket] as number;
        atMost[bucket] = (atMost[bucket] as number) + below;
      }
      sum += this.#sums[one] as number;
    }
    return { bounds: this.bounds, atMost, sum };
  }
}
