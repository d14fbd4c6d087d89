/**
 * AnsweredAddresses: the addresses that a container was given lately, for as long as its policy keeps them: whoever has an address
 * may ask for its name.
 */
/** Then the one that was given least recently is forgotten. */
const ADDRESSES_MAX = 4_000;

export class AnsweredAddresses {
  /** When each is forgotten. */
  readonly #untilMs = new Map<string, number>();

  add(address: Uint8Array, untilMs: number): void {
    const key = keyOf(address);
    this.#untilMs.delete(key);
    this.#untilMs.set(key, untilMs);
    if (this.#untilMs.size <= ADDRESSES_MAX) return;
    const [oldest = ""] = this.#untilMs.keys();
    this.#untilMs.delete(oldest);
  }

  has(address: Uint8Array, nowMs: number): boolean {
    const untilMs = this.#untilMs.get(keyOf(address));
    return untilMs !== undefined && nowMs < untilMs;
  }
}

function keyOf(address: Uint8Array): string {
  return Buffer.from(address).toString("latin1");
}
