/**
 * QueryLines: a line for each query: when, who, the result and the answer. What does not fit the terminal goes below, so
 * that the columns stay aligned.
 */
import type { MissedReport, QueryReport } from "../../src/api/queries.ts";
import { LOCAL_SOURCES, type LocalSourceKey } from "../../src/base/model/local-source.ts";
import { type OwnerReports, ownerOf, textElsewhere } from "./reply.ts";
import { printable } from "./printable.ts";
import { type Colour, type Display, preciseTime } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

const CONTAINER_WIDTH_MAX = 32;
const TIME_WIDTH = 12;
const GAP = "  ";
/** Below this width the source is not a column, but among the details. */
const NARROW = 100;
/** What does not fit stands below the container. */
const BELOW = " ".repeat(TIME_WIDTH + GAP.length);

export class QueryLines {
  readonly #display: Display;
  readonly #reports: OwnerReports;
  #width = "CONTAINER".length;
  #hasHeader = false;

  /** `names` are those of the containers that may send queries, for the width of their column. */
  constructor(display: Display, names: readonly string[], reports: OwnerReports = []) {
    this.#display = display;
    this.#reports = reports;
    for (const name of names) this.#widen(name);
  }

  /** The next line; the first comes with the header. */
  next(each: QueryReport | MissedReport): string {
    this.#widen(each.container);
    if (this.#hasHeader) return this.#line(each);
    this.#hasHeader = true;
    return `${this.#header()}\n${this.#line(each)}`;
  }

  #header(): string {
    const source = this.#isNarrow ? [] : ["SOURCE   "];
    const cells = ["TIME".padEnd(TIME_WIDTH), "CONTAINER".padEnd(this.#width), "RESULT  ", ...source];
    return this.#display.paint([...cells, "     TOOK", "TYPE ", "NAME", "ANSWER"].join(GAP), "bold");
  }

  /** Queries that were skipped have a line, too. */
  #line(each: QueryReport | MissedReport): string {
    const { paint } = this.#display;
    const container = printable(each.container).padEnd(this.#width);
    if ("missed" in each) return paint(`-- ${container}  ${each.missed} queries skipped (too many to show)`, "dim");
    const { time, rcode, result, ms, type, name } = each;
    const cells: readonly (readonly [text: string, colour?: Colour])[] = [
      [preciseTime(time), "dim"],
      [container],
      [rcode.padEnd(8), colourOf(rcode)],
      ...(this.#isNarrow ? [] : [[result.padEnd(9)] as const]),
      [(ms === 0 ? "-" : `${ms.toFixed(1)} ms`).padStart(9)],
      [(type ?? "-").padEnd(5)],
      [printable(name ?? "(no name)")],
    ];
    const line = cells.map(([text, colour]) => (colour === undefined ? text : paint(text, colour))).join(GAP);
    const length = cells.reduce((sum, [text]) => sum + text.length, (cells.length - 1) * GAP.length);
    return line + this.#answer(each, length);
  }

  /** The answer, and where it comes from; the cause of a failure. On the same line if there is room. */
  #answer(query: QueryReport, length: number): string {
    const { width, paint } = this.#display;
    const [answer, details] = [answerText(query, this.#reports), detailsText(query, this.#isNarrow)];
    const text = [answer, details].filter((part) => part !== "").join(GAP);
    if (text === "") return "";
    if (length + GAP.length + text.length > width) {
      const lines = wrapped(text, Math.max(1, width - BELOW.length));
      return lines.map((line) => `\n${BELOW}${paint(line, "dim")}`).join("");
    }
    const shown = details === "" ? answer : [answer, paint(details, "dim")].filter((part) => part !== "").join(GAP);
    return GAP + shown;
  }

  get #isNarrow(): boolean {
    return this.#display.width < NARROW;
  }

  #widen(name: string): void {
    this.#width = Math.max(this.#width, Math.min(CONTAINER_WIDTH_MAX, name.length));
  }
}

function answerText({ addresses, answers, owners = [], cause, rule }: QueryReport, reports: OwnerReports): string {
  if (rule !== undefined) return printable(rule);
  if (cause !== undefined && cause !== null) return printable(cause.sentence);
  if (addresses.length === 0) return answers === 0 ? "" : `${answers} ${answers === 1 ? "record" : "records"}`;
  const shown = addresses.map((address) => {
    const owner = ownerOf(address, owners);
    if (owner === undefined) return address;
    return `${address} ${printable(textElsewhere(owner, reports) ?? owner.container)}`;
  });
  // Records beyond the recorded addresses; aliases on the way to them count, too.
  const more = answers - addresses.length;
  return more > 0 ? `${shown.join(", ")}, ${more} more` : shown.join(", ");
}

function detailsText({ result, source, ttl, upstream, transport }: QueryReport, hasSource: boolean): string {
  const title = USUAL.has(source ?? "") ? undefined : LOCAL_SOURCES.find(({ key }) => key === source)?.title;
  const origin = title ?? upstream;
  const parts = [
    hasSource ? result : undefined,
    ttl === null ? undefined : `ttl ${ttl}`,
    transport === "tcp" ? "tcp" : undefined,
    origin === null ? undefined : `from ${printable(origin)}`,
  ];
  return parts.filter((part) => part !== undefined).join(", ");
}

/** Most local answers, of which nobody needs to be told where they come from. */
const USUAL: ReadonlySet<string> = new Set(["network", "rule"] satisfies LocalSourceKey[]);

function colourOf(rcode: string): Colour {
  return rcode === "NOERROR" ? "green" : rcode === "NXDOMAIN" ? "yellow" : "red";
}
