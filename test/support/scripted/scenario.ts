/**
 * Language of scenario files: what upstream servers do, for which names, and when. A scenario describes the failures in
 * readable lines, so that the test contains only the expected outcome.
 *
 *   # a comment, also at the end of a line
 *   name *.gone.test     the lines below apply to these names, until the next `name`; `*` matches any characters
 *   server 2             the lines below apply to the second server, until the next `server` or `name`
 *   server 2: silent     the same, with its first line
 *   ttl 60               TTL of the answers of the lines below, in seconds, until the next `ttl`; default 60
 *   minimum 30           minimum of the SOA in negative answers, likewise; default 30
 *   servfail             from the start on
 *   2s ok                from this time on, counted from the start
 *   for 500ms refused    for this time, from the end of the previous line
 *   loop                 repeats from the first line
 *
 * Lines without a server apply to all servers. Lines for a name take precedence over lines for all names, then lines for one
 * server over lines for all servers, then earlier lines over later ones. Where no line applies, the server answers as
 * upstream-answer.ts says. An action is one of SERVER_ACTIONS, with a number where a unit is given there; `slow 300ms`
 * before it, or alone, delays the reply.
 */

/** Actions of a server, and the unit of their number. */
const SERVER_ACTIONS = {
  // Addresses that identify the server: 192.0.2.N, 2001:db8::N; a text that does; DEADBEEF for private-use types; no
  // data for other types.
  ok: "",
  // Addresses that encode how often this name was answered: 198.18.0.N, 2001:db8:c::N.
  count: "",
  // Like ok; with signatures if DO is set, with AD if DO or AD is set, and with another address, 192.0.2.100+N, under
  // CD.
  signed: "",
  nodata: "",
  "nodata-without-soa": "",
  nxdomain: "",
  "nxdomain-without-soa": "",
  servfail: "",
  refused: "",
  formerr: "",
  notimp: "",
  // Like ok, but an error for queries with EDNS.
  "formerr-to-edns": "",
  "notimp-to-edns": "",
  // Like ok, but REFUSED for queries with AD.
  "refused-to-ad": "",
  silent: "",
  // Like ok, but nothing for queries with EDNS, with AD, or by UDP, as behind a network that drops these.
  "silent-to-edns": "",
  "silent-to-ad": "",
  "silent-by-udp": "",
  // Only TC by UDP, and nothing by TCP.
  "silent-by-tcp": "",
  // The ports are closed.
  closed: "",
  garbage: "",
  // By UDP a forged reply, 198.51.100.66, with only this one flaw; by TCP like ok.
  "wrong-id": "",
  "wrong-source": "",
  "wrong-question": "",
  // Only TC by UDP, like ok by TCP.
  truncated: "",
  // The same, but the connection closes in the middle of the reply.
  midway: "",
  // The given number of addresses, or a text of that size; truncated by UDP if the client accepts less.
  big: "records",
  // The same, whatever the client accepts.
  oversized: "records",
  // By UDP the given number of forged replies with other ids before the correct reply.
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
  /** Position in the list, from 1. */
  readonly server: number | undefined;
  readonly steps: readonly Step[];
  /** Period after which it repeats. */
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

/** Current action of a server for a name; undefined if the scenario does not specify it. */
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
  /** End of the last step, if it has one. */
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
        expect(second !== "" && rest.length === 0, "expected `name PATTERN`");
        this.#begin(second, undefined);
        return;
      case "server":
        expect(/^[1-9]\d*:?$/.test(second), "expected `server NUMBER`, counted from 1");
        expect(rest.length === 0 || second.endsWith(":"), "a colon must precede the server's action");
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
        expect(words.length === 1, "`loop` takes no arguments");
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
    expect(draft.loopMs === undefined, "nothing may follow `loop`");
    expect(
      last === undefined || draft.endMs !== undefined || !isFor,
      "the previous line has no end: it needs `for`, too",
    );
    expect(last === undefined || draft.endMs !== undefined || isTimed, "the previous line has no end");
    const endMs = draft.endMs ?? 0;
    const fromMs = isTimed && !isFor ? milliseconds(words[0]) : endMs;
    expect(last !== undefined || fromMs === 0, "the first line must start at 0s");
    expect(last === undefined || fromMs >= endMs, "it starts before the end of the previous line");
    expect(last === undefined || fromMs > last.fromMs, "it starts before the previous line");
    draft.steps.push({ fromMs, action });
    draft.endMs = isFor ? endMs + lasting(words[1]) : undefined;
  }

  #loop(): void {
    const draft = this.#draft;
    expect(draft !== undefined, "nothing to repeat");
    expect(draft.endMs !== undefined, "the previous line has no end: it needs `for`");
    draft.loopMs = draft.endMs;
  }

  #action(words: readonly string[]): ServerAction {
    const isSlow = words[0] === "slow";
    const delayMs = isSlow ? milliseconds(words[1]) : 0;
    const [word = isSlow ? "ok" : "", number, ...more] = isSlow ? words.slice(2) : words;
    expect(isWord(word), `unknown action "${word}": use ${Object.keys(SERVER_ACTIONS).join(", ")}, or slow`);
    const counted = SERVER_ACTIONS[word];
    expect(number === undefined || counted !== "", `"${word}" takes no number`);
    expect(counted === "" || /^\d+$/.test(number ?? ""), `"${word}" needs a number of ${counted}`);
    expect(more.length === 0, "too many words");
    expect(word !== "closed" || (this.#names === undefined && !isSlow), "closed cannot be combined with name or slow");
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
  expect(words.length === 2 && /^\d+$/.test(words[1] ?? ""), "expected a whole number of seconds");
  return Number(words[1]);
}

function lasting(text: string | undefined): number {
  const ms = milliseconds(text);
  expect(ms > 0, "a duration must be positive");
  return ms;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

function milliseconds(text = ""): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? [];
  expect(number !== undefined, `invalid duration "${text}": use a number with a unit, such as 300ms, 1.5s or 2m`);
  return Number(number) * (UNITS_MS[unit] ?? 0);
}
