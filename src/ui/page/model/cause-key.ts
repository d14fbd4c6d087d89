/**
 * CauseKey: what failures of one cause have in common, whichever container looked up whichever name: one missing network is one cause. And
 * the sentence for all of them.
 */
import type { Cause, CauseCode } from "../../../api/causes.ts";

/** A container and the name that it looks up; "" where it concerns all of them. */
export interface FailingPair {
  readonly container: string;
  readonly name: string;
}

/** Names that nothing here has: there is nothing to say about one of them that is not true of all. */
const UNKNOWN: Readonly<Partial<Record<CauseCode, string>>> = {
  "unknown-name": "no container on this engine has any of these names",
  "does-not-exist": "these names do not exist, according to their upstream servers",
};
/** These are about the servers, whatever is looked up. */
const OF_SERVERS: ReadonlySet<CauseCode> = new Set(["upstreams-down", "no-upstream"]);
const ELSEWHERE: ReadonlySet<CauseCode> = new Set(["other-network", "other-project"]);
const CONNECT = /\bdocker network connect (?:.* )?(\S+) \S+$/;
/** What is between the words of a sentence or a command. */
const BETWEEN = /([\s"',;:()]+)/;
const AGO = /\d+ \w+ ago/g;

export function causeKey(cause: Cause | null, pair: FailingPair, result: string): string {
  if (cause === null) return JSON.stringify([null, result, pair]);
  const { code, about, fix, sentence } = cause;
  if (UNKNOWN[code] !== undefined) return JSON.stringify([code]);
  if (OF_SERVERS.has(code)) return JSON.stringify([code, fix]);
  const what = about ?? networkOf(cause);
  if (what !== undefined) return JSON.stringify([code, what]);
  return JSON.stringify([code, withoutNames(sentence, pair), withoutNames(fix ?? "", pair)]);
}

/** The sentence of a cause that concerns these names and containers; that of the API for one of each. */
export function causeSentence(cause: Cause, names: readonly string[], containers: readonly string[]): string {
  if (names.length <= 1 && containers.length <= 1) return cause.sentence;
  const { code, sentence } = cause;
  const network = networkOf(cause);
  if (network !== undefined) {
    const [name, container] = [names.length === 1 ? `"${names[0]}" is` : "these names are", containers[0] ?? ""];
    return `${name} on network ${network}; ${containers.length === 1 ? `${container} is` : "these containers are"} not on it`;
  }
  if (names.length === 1) return sentence;
  return UNKNOWN[code] ?? `${sentence}; the same for the other names`;
}

/** The network that a client is not on. */
function networkOf({ code, about, fix }: Cause): string | undefined {
  if (!ELSEWHERE.has(code)) return undefined;
  return about ?? CONNECT.exec(fix ?? "")?.[1];
}

function withoutNames(text: string, { container, name }: FailingPair): string {
  const words = text.replaceAll(AGO, "ago").split(BETWEEN);
  return words.map((word) => (word === container ? "@" : word === name ? "*" : word)).join("");
}
