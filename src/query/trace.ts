/**
 * Trace: what a query met on its way, told while it goes there. The way itself tells it, step by step, so that it cannot
 * be another story than the program's; for every other query there is none, and nothing is told.
 */
import type { Pointer } from "../model/network-names.ts";
import type { FlightEvent, Layer, Step } from "../model/step.ts";
import { serverText } from "../model/server-text.ts";
import type { Route, Server } from "../model/view.ts";
import { presentation } from "../model/wire-name.ts";

/** What happens while one question is asked of servers; all who wait for it are told the same. */
export class FlightJournal {
  readonly events: FlightEvent[] = [];
  /** Whose reply it was in the end. */
  answeredBy: string | undefined;

  note(atMs: number, server: Server | undefined, what: string): void {
    this.events.push({ atMs, server: server === undefined ? undefined : serverText(server), what });
  }

  replied(atMs: number, server: Server, what: string): void {
    this.note(atMs, server, what);
    this.answeredBy = serverText(server);
  }
}

/** One way of reading a name: whole, or with its tail taken for a network's name. */
interface Candidate {
  readonly name: string;
  readonly network: string | undefined;
  readonly links: string[];
  readonly misses: string[];
  readonly hidden: string[];
  hit: { readonly layer: "links" | "names"; readonly what: string } | undefined;
}

/** A reverse name can be cut in two in 33 ways. */
const SPLITS_TOLD = 3;

export class Trace {
  readonly #steps: Step[] = [];
  #candidate: Candidate | undefined;
  readonly #splits: string[] = [];
  #flight: { readonly journal: FlightJournal; readonly place: number } | undefined;

  get steps(): readonly Step[] {
    this.#endCandidate();
    this.#endSplits();
    const flight = this.#flight;
    if (flight === undefined) return this.#steps;
    const { events, answeredBy } = flight.journal;
    const isAnswer = answeredBy !== undefined && !this.#steps.some((step) => step.isAnswer);
    const why = answeredBy === undefined ? "no server gave an answer to go by" : `${answeredBy} has answered`;
    return this.#steps.toSpliced(flight.place, 0, { layer: "servers", isAnswer, why, events: [...events] });
  }

  /** Whose reply it was, where servers were asked. */
  get server(): string | undefined {
    return this.#flight?.journal.answeredBy;
  }

  /** Servers are asked. */
  flies(journal: FlightJournal): FlightJournal {
    this.#flight = { journal, place: this.#steps.length };
    return journal;
  }

  /** `name` is looked for whole, or, from `length` on, as that of a network. */
  begins(name: Uint8Array, length: number, end: number): void {
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

  followsLink(network: string, target: Uint8Array, isHit: boolean): void {
    const what = `a link on ${quoted(network)} to ${quoted(presentation(target, 0, target.length))}`;
    if (isHit) this.#hit("links", what);
    else this.#candidate?.links.push(`${what}, which nobody is called there`);
  }

  looksUp(network: string, isHit: boolean): void {
    // What only a KIND node knows is on no network.
    if (network === "") return isHit ? this.#hit("names", "a name of the node's own") : undefined;
    if (isHit) this.#hit("names", `a name on ${quoted(network)}`);
    else this.#candidate?.misses.push(network);
  }

  /** A link to nobody hides a name, as with Docker. */
  isHidden(network: string): void {
    this.#candidate?.hidden.push(network);
  }

  /** What became of a name that was found. */
  found(isAnswer: boolean, what: string): void {
    const hit = this.#candidate?.hit;
    this.#endCandidate();
    if (hit === undefined) return;
    const last = this.#steps.pop();
    if (last !== undefined) this.#steps.push({ ...last, isAnswer, why: `${last.why}; ${what}` });
  }

  passes(layer: Layer, why: string): void {
    this.#add(layer, false, why);
  }

  answers(layer: Layer, why: string): void {
    this.#add(layer, true, why);
  }

  /** A name that belongs to an address: whose that is, if anybody's here. */
  reverses(pointer: Pointer | undefined): void {
    if (pointer === undefined) return this.passes("reverse", "no address of a container on its networks");
    const { target } = pointer;
    if (target === undefined)
      return this.answers("reverse", "a container's address, whose name is too long to be told");
    this.answers("reverse", `the address of ${quoted(presentation(target, 0, target.length))}`);
  }

  takes(route: Route): void {
    const { suffix, servers, isLocal, by, withheld = [] } = route;
    const domain = presentation(suffix, 0, suffix.length);
    const which =
      route.labelCount === 0
        ? "no domain of its own, so it goes the way of every name"
        : `it ends with ${quoted(domain)}`;
    const said = by === undefined ? "" : `, by ${by}`;
    if (isLocal) return this.answers("route", `${which}${said}: such names exist nowhere outside`);
    const whom = servers.map((server) => `${serverText(server)}${server.isBackup === true ? " as backup" : ""}`);
    this.passes("route", `${which}${said}: ${whom.join(", ") || "there is nobody to ask"}`);
    if (withheld.length === 0) return;
    const left = withheld.map((server) => serverText(server)).join(", ");
    this.passes("route", `${left} left out: asked from the host, and no network of this container leads outside`);
  }

  #hit(layer: "links" | "names", what: string): void {
    if (this.#candidate !== undefined) this.#candidate.hit = { layer, what };
  }

  #add(layer: Layer, isAnswer: boolean, why: string): void {
    this.#endCandidate();
    this.#endSplits();
    this.#steps.push({ layer, isAnswer, why });
  }

  /** Several ways of cutting a name in two that came to nothing are one line. */
  #endSplits(): void {
    const splits = this.#splits.splice(0);
    if (splits.length === 0) return;
    const told = splits.slice(0, SPLITS_TOLD).join(", ");
    const more = splits.length > SPLITS_TOLD ? ` and ${splits.length - SPLITS_TOLD} more` : "";
    const why = `nor cut in two: ${told}${more}: this container is on no network called so`;
    this.#steps.push({ layer: "names", isAnswer: false, why });
  }

  #endCandidate(): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    this.#candidate = undefined;
    const { name, network, links, misses, hidden, hit } = candidate;
    const isNoNetwork =
      network !== undefined && hit === undefined && links.length + misses.length + hidden.length === 0;
    if (!isNoNetwork) this.#endSplits();
    const add = (layer: Layer, why: string): void => void this.#steps.push({ layer, isAnswer: false, why });
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
