/**
 * SearchWords: a search through networks in words, for whoever has a question explained. The search itself tells what it
 * does, so that it cannot be another story; for every other question there are no words.
 */
import { presentation } from "../../../base/dns/name.ts";
import type { NamesTrace } from "../../../base/model/visible-names.ts";

/** One way of reading a name: whole, or with its tail taken for a network's name. */
interface NameCandidate {
  readonly name: string;
  readonly network: string | undefined;
  readonly links: string[];
  readonly misses: string[];
  readonly hidden: string[];
  hit: { readonly layer: "links" | "names"; readonly what: string } | undefined;
}

/** A reverse name can be cut in two in 33 ways. */
const SPLITS_SHOWN = 3;

export class SearchTrace {
  readonly #trace: NamesTrace;
  #candidate: NameCandidate | undefined;
  readonly #splits: string[] = [];

  constructor(trace: NamesTrace) {
    this.#trace = trace;
  }

  /** `name` is looked for whole, or, from `length` on, as that of a network. */
  beginCandidate(name: Uint8Array, length: number, end: number): void {
    this.#endCandidate();
    this.#candidate = {
      name: presentation(name, 0, length),
      network: length < end ? presentation(name, length, end) : undefined,
      links: [],
      misses: [],
      hidden: [],
      hit: undefined,
    };
  }

  recordLink(network: string, target: Uint8Array, isHit: boolean): void {
    const what = `a link on ${quoted(network)} to ${quoted(presentation(target, 0, target.length))}`;
    if (isHit) this.#hit("links", what);
    else this.#candidate?.links.push(`${what}, which nobody is called there`);
  }

  recordLookup(network: string, isHit: boolean): void {
    if (isHit) this.#hit("names", `a name on ${quoted(network)}`);
    else this.#candidate?.misses.push(network);
  }

  /** A link to nobody hides a name, as with Docker. */
  recordHidden(network: string): void {
    this.#candidate?.hidden.push(network);
  }

  /** The search is over. */
  end(): void {
    this.#endCandidate();
    this.#endSplits();
  }

  #hit(layer: "links" | "names", what: string): void {
    if (this.#candidate !== undefined) this.#candidate.hit = { layer, what };
  }

  /** Several ways of cutting a name in two that came to nothing are one line. */
  #endSplits(): void {
    const splits = this.#splits.splice(0);
    if (splits.length === 0) return;
    const told = splits.slice(0, SPLITS_SHOWN).join(", ");
    const more = splits.length > SPLITS_SHOWN ? ` and ${splits.length - SPLITS_SHOWN} more` : "";
    const why = `nor cut in two: ${told}${more}: this container is on no network called so`;
    this.#trace.record("names", why);
  }

  #endCandidate(): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    this.#candidate = undefined;
    const { name, network, links, misses, hidden, hit } = candidate;
    const isNoNetwork =
      network !== undefined && hit === undefined && links.length + misses.length + hidden.length === 0;
    if (!isNoNetwork) this.#endSplits();
    const add = (layer: "links" | "names", why: string): void => this.#trace.record(layer, why);
    if (hit?.layer === "links") return add("links", `${quoted(name)} is ${hit.what}`);
    if (links.length > 0) add("links", `${quoted(name)} is ${links.join("; ")}`);
    else if (network === undefined) add("links", `${quoted(name)} is no link of this container`);
    for (const each of hidden) add("names", `${quoted(name)} on ${quoted(each)} is hidden by a link to nobody`);
    if (hit !== undefined) {
      const before = misses.length === 0 ? "" : ` (not on ${list(misses)}, which is asked first)`;
      return add("names", `${quoted(name)} is ${hit.what}${before}`);
    }
    if (misses.length > 0) return add("names", `${quoted(name)} is no name on ${list(misses)}`);
    if (hidden.length > 0) return;
    if (network === undefined) return add("names", "this container is on no network with names");
    this.#splits.push(`${quoted(name)} on ${quoted(network)}`);
  }
}

function quoted(text: string): string {
  return `"${text}"`;
}

function list(names: readonly string[]): string {
  return names.map(quoted).join(", ");
}
