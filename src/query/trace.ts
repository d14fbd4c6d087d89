/**
 * Trace: what a query met on its way, told while it goes there. The way itself tells it, step by step, so that it cannot
 * be another story than the program's; for every other query there is none, and nothing is told.
 */
import { presentation } from "../base/dns/name.ts";
import type { NamesTrace, ReverseName } from "../base/model/visible-names.ts";
import type { UpstreamEvent, StepLayer, Step } from "../base/model/step.ts";
import { serverText } from "../base/model/server-text.ts";
import type { Route, Server } from "../base/model/view.ts";

/** What happens while one question is asked of servers; all who wait for it are told the same. */
export class UpstreamJournal {
  readonly events: UpstreamEvent[] = [];
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

export class Trace implements NamesTrace {
  readonly #steps: Step[] = [];
  #flight: { readonly journal: UpstreamJournal; readonly place: number } | undefined;

  get steps(): readonly Step[] {
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
  attachJournal(journal: UpstreamJournal): UpstreamJournal {
    this.#flight = { journal, place: this.#steps.length };
    return journal;
  }

  /** What is made of the name that was found, or denied, by the source that told last. */
  amendLast(isAnswer: boolean, what: string): void {
    const last = this.#steps.pop();
    if (last !== undefined) this.#steps.push({ ...last, isAnswer, why: `${last.why}; ${what}` });
  }

  record(layer: StepLayer, why: string): void {
    this.#add(layer, false, why);
  }

  recordAnswer(layer: StepLayer, why: string): void {
    this.#add(layer, true, why);
  }

  /** A name that belongs to an address: whose that is, if anybody's here. */
  recordReverse(pointer: ReverseName | undefined): void {
    if (pointer === undefined) return this.record("reverse", "no address of a container on its networks");
    const { target } = pointer;
    if (target === undefined)
      return this.recordAnswer("reverse", "a container's address, whose name is too long to be told");
    this.recordAnswer("reverse", `the address of ${quoted(presentation(target, 0, target.length))}`);
  }

  recordRoute(route: Route): void {
    const { suffix, servers, isLocal, by, withheld = [] } = route;
    const domain = presentation(suffix, 0, suffix.length);
    const which =
      route.labelCount === 0
        ? "no domain of its own, so it goes the way of every name"
        : `it ends with ${quoted(domain)}`;
    const said = by === undefined ? "" : `, by ${by}`;
    if (isLocal) return this.recordAnswer("route", `${which}${said}: such names exist nowhere outside`);
    const whom = servers.map((server) => `${serverText(server)}${server.isBackup === true ? " as backup" : ""}`);
    this.record("route", `${which}${said}: ${whom.join(", ") || "there is nobody to ask"}`);
    if (withheld.length === 0) return;
    const left = withheld.map((server) => serverText(server)).join(", ");
    this.record("route", `${left} left out: asked from the host, and no network of this container leads outside`);
  }

  #add(layer: StepLayer, isAnswer: boolean, why: string): void {
    this.#steps.push({ layer, isAnswer, why });
  }
}

function quoted(text: string): string {
  return `"${text}"`;
}
