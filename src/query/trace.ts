/**
 * Trace: the steps of one query, recorded while it is resolved. The resolving code itself records them, so a trace
 * cannot differ from what happened. All other queries have no trace and record nothing.
 */
import { presentation } from "../base/dns/name.ts";
import type { HeldName, NamesTrace, ReverseName } from "../base/model/visible-names.ts";
import type { UpstreamEvent, StepLayer, Step } from "../base/model/query-record.ts";
import { missingText, serverText } from "../base/model/server-text.ts";
import type { Route, Server } from "../base/model/view.ts";

/** What happens while one question is sent to upstream servers; all its waiters share it. */
export class UpstreamJournal {
  readonly events: UpstreamEvent[] = [];
  /** The server whose reply was used. */
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
  /** Why Docker's resolver does not answer, if that keeps the name from being forwarded. */
  held: HeldName | undefined;
  readonly #steps: Step[] = [];
  #upstream: { readonly journal: UpstreamJournal; readonly index: number } | undefined;

  get steps(): readonly Step[] {
    const upstream = this.#upstream;
    if (upstream === undefined) return this.#steps;
    const { events, answeredBy } = upstream.journal;
    const isAnswer = answeredBy !== undefined && !this.#steps.some((step) => step.isAnswer);
    const why = answeredBy === undefined ? "no server gave a usable answer" : `answered by ${answeredBy}`;
    return this.#steps.toSpliced(upstream.index, 0, { layer: "servers", isAnswer, why, events: [...events] });
  }

  /** The server whose reply was used, if the query went upstream. */
  get server(): string | undefined {
    return this.#upstream?.journal.answeredBy;
  }

  /** Adds the upstream step: its events are read from `journal`. */
  attachJournal(journal: UpstreamJournal): UpstreamJournal {
    this.#upstream = { journal, index: this.#steps.length };
    return journal;
  }

  /** Completes the last step with what the answer is made of. */
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

  /** Records whether an address belongs to a container. */
  recordReverse(pointer: ReverseName | undefined): void {
    if (pointer === undefined) return this.record("reverse", "not the address of a container on its networks");
    const { target, dockerQuestion } = pointer;
    if (target === undefined && dockerQuestion !== undefined)
      return this.recordAnswer(
        "reverse",
        `an address of ${dockerQuestion.whose} for which Docker's resolver has no name`,
      );
    if (target === undefined)
      return this.recordAnswer("reverse", "the address of a container whose name is too long for a DNS message");
    this.recordAnswer("reverse", `the address of ${quoted(presentation(target, 0, target.length))}`);
  }

  recordRoute(route: Route): void {
    const { suffix, servers, isLocal, by, withheld = [], missing = [] } = route;
    const domain = quoted(presentation(suffix, 0, suffix.length));
    const which = route.labelCount === 0 ? "no domain-specific route; default upstreams" : `route for ${domain}`;
    const source = by === undefined ? "" : ` (${by})`;
    if (isLocal) return this.recordAnswer("route", `${which}${source}: names in this domain are never forwarded`);
    const upstreams = servers.map((server) => `${serverText(server)}${server.isBackup === true ? " as backup" : ""}`);
    this.record("route", `${which}${source}: ${upstreams.join(", ") || "no upstream servers"}`);
    for (const each of missing) this.record("route", missingText(each));
    if (withheld.length === 0) return;
    const skipped = withheld.map((server) => serverText(server)).join(", ");
    this.record("route", `${skipped} skipped: reached from the host, and this container has no external network`);
  }

  /** Records that a name fails which only Docker's resolver may know. */
  recordHeld(held: HeldName): void {
    this.held = held;
    this.recordAnswer("names", `not forwarded: ${held.reason}`);
  }

  /** Records that no rule keeps the name from being forwarded. */
  recordForwarding({ labelCount }: Route): void {
    const isDefault = labelCount === 0;
    this.record(
      "special",
      isDefault ? "not a special name" : "a domain-specific route takes precedence over special names",
    );
  }

  #add(layer: StepLayer, isAnswer: boolean, why: string): void {
    this.#steps.push({ layer, isAnswer, why });
  }
}

function quoted(text: string): string {
  return `"${text}"`;
}
