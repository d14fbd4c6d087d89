/**
 * Owns the language of scenario files: what name servers do, for which names, and from when to when. A story of failure
 * is told there in lines that can be read aloud, so that the test is left with what has to come of it.
 *
 *   # a comment, also behind a line
 *   name *.gone.test     the lines below are for these names, until the next `name`; `*` stands for any characters
 *   server 2             the lines below are the second server's, until the next `server` or `name`
 *   server 2: silent     the same, and the first such line
 *   ttl 60               of the answers of the lines below, in seconds, until the next `ttl`; 60 at first
 *   minimum 30           of the SOA in denials, likewise; 30 at first
 *   servfail             from the start on
 *   2s ok                from then on, counted from the start
 *   for 500ms refused    for so long, from where the line before ends
 *   loop                 then again from the first one
 *
 * Lines without a server are everybody's. What is told of a name goes before what is told of all, what is told of one
 * server before what is told of all, and what stands earlier before what stands later; of whom nothing is told, he
 * answers as upstream-answer.ts says. What a server does is a word of SERVER_ACTIONS, with its number where one is named there;
 * `slow 300ms` before it, or alone, lets it wait.
 */

/** What a server can do, and the number that belongs to it. */
const SERVER_ACTIONS = {
  // Addresses that tell the server: 192.0.2.N, 2001:db8::N; a text that does; DEADBEEF for types of private use; no data
  // of other types.
  ok: "",
  // Addresses that tell how often this name was answered: 198.18.0.N, 2001:db8:c::N.
  count: "",
  // Like ok; signed for who sets DO, with AD for who sets DO or AD, and another address, 192.0.2.100+N, under CD.
  signed: "",
  nodata: "",
  "nodata-without-soa": "",
  nxdomain: "",
  "nxdomain-without-soa": "",
  servfail: "",
  refused: "",
  formerr: "",
  notimp: "",
  // Like ok, but not for who speaks EDNS.
  "formerr-to-edns": "",
  "notimp-to-edns": "",
  silent: "",
  // Nobody listens.
  closed: "",
  garbage: "",
  // By UDP a lie, 198.51.100.66, that only the one thing gives away; by TCP like ok.
  "wrong-id": "",
  "wrong-source": "",
  "wrong-question": "",
  // Nothing but TC by UDP, like ok by TCP.
  truncated: "",
  // The same, but the connection breaks in the middle of the reply.
  midway: "",
  // So many addresses, or a text of that size; cut for who takes less by UDP.
  big: "records",
  // The same, whatever the asker takes.
  oversized: "records",
  // By UDP so many lies under other ids before the right reply.
  spoof: "replies",
} as const;

export type Word = keyof typeof SERVER_ACTIONS;

export interface ServerAction {
  readonly word: Word;
  readonly amount: number;
  readonly delayMs: number;
  readonly ttlS: number;
  readonly minimumS: number;
}

type Step = { readonly fromMs: number; readonly action: ServerAction };

interface Part {
  readonly names: string | undefined;
  /** The place in the list, from 1. */
  readonly server: number | undefined;
  readonly steps: readonly Step[];
  /** After so long it begins anew. */
  readonly loopMs: number | undefined;
}

export type Scenario = readonly Part[];

export function parseScenario(text: string, file: string): Scenario {
  const reader = new Reader();
  for (const [index, line] of text.split("\n").entries()) {
    try {
      reader.line(line.replace(/#.*/, "").trim().split(/\s+/).filter(Boolean));
    } catch (error) {
      throw new Error(`${file}:${index + 1}: ${(error as Error).message}: "${line.trim()}"`, { cause: error });
    }
  }
  return reader.scenario();
}

/** What this server does now about this name; nothing where the scenario does not say. */
export function actionOf(scenario: Scenario, server: number, name: string, atMs: number): ServerAction | undefined {
  const fits = (part: Part): boolean => {
    return (part.server ?? server) === server && (part.names === undefined || fitsPattern(name, part.names));
  };
  const part = scenario.find(fits);
  if (part === undefined) return undefined;
  const ms = part.loopMs === undefined ? atMs : atMs % part.loopMs;
  return part.steps.findLast(({ fromMs }) => fromMs <= ms)?.action;
}

const patterns = new Map<string, RegExp>();

function fitsPattern(name: string, pattern: string): boolean {
  let expression = patterns.get(pattern);
  if (expression === undefined) {
    const pieces = pattern.split("*").map((piece) => piece.replaceAll(/[^\w-]/g, "\\$&"));
    patterns.set(pattern, (expression = new RegExp(`^${pieces.join(".*")}$`, "i")));
  }
  return expression.test(name);
}

interface Draft {
  readonly names: string | undefined;
  readonly server: number | undefined;
  readonly steps: Step[];
  /** Where the last step ends, if it does. */
  endMs: number | undefined;
  loopMs: number | undefined;
}

class Reader {
  readonly #drafts: Draft[] = [];
  #names: string | undefined;
  #server: number | undefined;
  #draft: Draft | undefined;
  #ttlS = 60;
  #minimumS = 30;

  line(words: readonly string[]): void {
    const [first, second = "", ...rest] = words;
    switch (first) {
      case undefined:
        return;
      case "name":
        expect(second !== "" && rest.length === 0, "it is `name PATTERN`");
        this.#begin(second, undefined);
        return;
      case "server":
        expect(/^[1-9]\d*:?$/.test(second), "it is `server NUMBER`, counted from 1");
        expect(rest.length === 0 || second.endsWith(":"), "what a server does stands behind a colon");
        this.#begin(this.#names, Number.parseInt(second, 10));
        if (rest.length > 0) this.#step(rest);
        return;
      case "ttl":
        this.#ttlS = seconds(words);
        return;
      case "minimum":
        this.#minimumS = seconds(words);
        return;
      case "loop":
        expect(words.length === 1, "`loop` stands alone");
        this.#loop();
        return;
      default:
        this.#step(words);
    }
  }

  scenario(): Scenario {
    const rank = ({ names, server }: Part): number => (names === undefined ? 2 : 0) + (server === undefined ? 1 : 0);
    return this.#drafts.toSorted((a, b) => rank(a) - rank(b));
  }

  #begin(names: string | undefined, server: number | undefined): void {
    this.#names = names;
    this.#server = server;
    this.#draft = undefined;
  }

  #step(words: readonly string[]): void {
    if (this.#draft === undefined) {
      this.#draft = { names: this.#names, server: this.#server, steps: [], endMs: undefined, loopMs: undefined };
      this.#drafts.push(this.#draft);
    }
    const draft = this.#draft;
    const last = draft.steps.at(-1);
    const isFor = words[0] === "for";
    const isTimed = isFor || /^\d/.test(words[0] ?? "");
    const action = this.#action(words.slice(isFor ? 2 : isTimed ? 1 : 0));
    expect(draft.loopMs === undefined, "nothing comes after `loop`");
    expect(
      last === undefined || draft.endMs !== undefined || !isFor,
      "the line before has no end: it wants `for`, too",
    );
    expect(last === undefined || draft.endMs !== undefined || isTimed, "the line before has no end");
    const endMs = draft.endMs ?? 0;
    const fromMs = isTimed && !isFor ? milliseconds(words[0]) : endMs;
    expect(last !== undefined || fromMs === 0, "the first line begins at 0s");
    expect(last === undefined || fromMs >= endMs, "it begins before the line before ends");
    expect(last === undefined || fromMs > last.fromMs, "it begins before the line before");
    draft.steps.push({ fromMs, action });
    draft.endMs = isFor ? endMs + lasting(words[1]) : undefined;
  }

  #loop(): void {
    const draft = this.#draft;
    expect(draft !== undefined, "there is nothing to repeat");
    expect(draft.endMs !== undefined, "the line before has no end: it wants `for`");
    draft.loopMs = draft.endMs;
  }

  #action(words: readonly string[]): ServerAction {
    const isSlow = words[0] === "slow";
    const delayMs = isSlow ? milliseconds(words[1]) : 0;
    const [word = isSlow ? "ok" : "", number, ...more] = isSlow ? words.slice(2) : words;
    expect(isWord(word), `nobody knows "${word}"; a server can be ${Object.keys(SERVER_ACTIONS).join(", ")}, or slow`);
    const counted = SERVER_ACTIONS[word];
    expect(number === undefined || counted !== "", `"${word}" has no number`);
    expect(counted === "" || /^\d+$/.test(number ?? ""), `"${word}" wants to know how many ${counted}`);
    expect(more.length === 0, "there are words too many");
    expect(word !== "closed" || (this.#names === undefined && !isSlow), "nobody is closed for some names, or slowly");
    return { word, amount: Number(number ?? 0), delayMs, ttlS: this.#ttlS, minimumS: this.#minimumS };
  }
}

function expect(isSo: boolean, message: string): asserts isSo {
  if (!isSo) throw new Error(message);
}

function isWord(word: string): word is Word {
  return Object.hasOwn(SERVER_ACTIONS, word);
}

function seconds(words: readonly string[]): number {
  expect(words.length === 2 && /^\d+$/.test(words[1] ?? ""), "it is a whole number of seconds");
  return Number(words[1]);
}

function lasting(text: string | undefined): number {
  const ms = milliseconds(text);
  expect(ms > 0, "it lasts no time");
  return ms;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

function milliseconds(text = ""): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? [];
  expect(number !== undefined, `"${text}" is no time; times are like 300ms, 1.5s or 2m`);
  return Number(number) * (UNITS_MS[unit] ?? 0);
}
