/**
 * SearchTrace: the steps of a name search through networks, in words, for `dns11 explain`. The search itself records
 * them, so that they cannot differ from what it did; other queries have no trace.
 */
import { presentation } from "../../../base/dns/name.ts";
import type { NamesTrace } from "../../../base/model/visible-names.ts";

/** One reading of a name: whole, or as NAME.NETWORK. */
interface NameCandidate {
  readonly name: string;
  readonly network: string | undefined;
  readonly links: string[];
  readonly misses: string[];
  readonly hidden: string[];
  hit: { readonly layer: "links" | "names"; readonly what: string } | undefined;
}

/** A reverse name has 33 readings as NAME.NETWORK. */
const SPLITS_SHOWN = 3;

export class SearchTrace {
  readonly #trace: NamesTrace;
  #candidate: NameCandidate | undefined;
  readonly #splits: string[] = [];

  constructor(trace: NamesTrace) {
    this.#trace = trace;
  }

  /** Starts a candidate: the whole name, or a name of `length` bytes followed by a network's name. */
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
    else this.#candidate?.links.push(`${what}, which does not exist there`);
  }

  /** `project`: its containers come before those of others with the same name. */
  recordLookup(network: string, isHit: boolean, project?: string): void {
    const own = project === undefined ? "" : `, in the container's own project ${quoted(project)} (switch own-project)`;
    if (isHit) this.#hit("names", `a name on ${quoted(network)}${own}`);
    else this.#candidate?.misses.push(network);
  }

  /** A link to a name that does not exist hides a container's name, as in Docker. */
  recordHidden(network: string): void {
    this.#candidate?.hidden.push(network);
  }

  /** Ends the search. */
  end(): void {
    this.#endCandidate();
    this.#endSplits();
  }

  #hit(layer: "links" | "names", what: string): void {
    if (this.#candidate !== undefined) this.#candidate.hit = { layer, what };
  }

  /** Reports all readings as NAME.NETWORK without such a network in one line. */
  #endSplits(): void {
    const splits = this.#splits.splice(0);
    if (splits.length === 0) return;
    const shown = splits.slice(0, SPLITS_SHOWN).join(", ");
    const more = splits.length > SPLITS_SHOWN ? ` and ${splits.length - SPLITS_SHOWN} more` : "";
    const text = `not NAME.NETWORK either: this container is on no such network (${shown}${more})`;
    this.#trace.record("names", text);
  }

  #endCandidate(): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    this.#candidate = undefined;
    const { name, network, links, misses, hidden, hit } = candidate;
    const isUnknownNetwork =
      network !== undefined && hit === undefined && links.length + misses.length + hidden.length === 0;
    if (!isUnknownNetwork) this.#endSplits();
    const add = (layer: "links" | "names", text: string): void => this.#trace.record(layer, text);
    if (hit?.layer === "links") return add("links", `${quoted(name)} is ${hit.what}`);
    if (links.length > 0) add("links", `${quoted(name)} is ${links.join("; ")}`);
    else if (network === undefined) add("links", `this container has no link ${quoted(name)}`);
    for (const each of hidden)
      add("names", `${quoted(name)} on ${quoted(each)} is hidden by a link whose target does not exist`);
    if (hit !== undefined) {
      const before = misses.length === 0 ? "" : ` (not found on ${list(misses)}, which is searched first)`;
      return add("names", `${quoted(name)} is ${hit.what}${before}`);
    }
    if (misses.length > 0) return add("names", `no container has the name ${quoted(name)} on ${list(misses)}`);
    if (hidden.length > 0) return;
    if (network === undefined) return add("names", "this container is on no network with container names");
    this.#splits.push(`${quoted(name)} on ${quoted(network)}`);
  }
}

function quoted(text: string): string {
  return `"${text}"`;
}

function list(names: readonly string[]): string {
  return names.map(quoted).join(", ");
}
