/**
 * Parameters: reads the parameters of a request. What is unknown or invalid is an error, so that a typo does not select everything.
 */
import { Fault } from "../../base/lib/fault.ts";
import type { ApiRequest } from "./http.ts";

export function refuseUnknown(query: ApiRequest["query"], keys: readonly string[]): void {
  const unknown = [...query.keys()].find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new Fault("BAD_QUERY", `Unknown parameter "${unknown}": use one of ${keys.join(", ")}`);
  }
}

export function isTrue(query: ApiRequest["query"], key: string): boolean {
  const text = query.get(key) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new Fault("BAD_QUERY", `Invalid value "${text}" for ${key}: use true or false`);
}

export function numberOf(query: ApiRequest["query"], key: string, max: number): number | undefined {
  const text = query.get(key);
  if (text === null) return undefined;
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= max) return number;
  throw new Fault("BAD_QUERY", `Invalid value "${text}" for ${key}: use a whole number from 0 to ${max}`);
}

/**
 * Whether a text matches a pattern, in which `*` stands for anything and `?` for one character; letter case is
 * ignored. It backtracks to the last star only, so that no pattern can make it slow.
 */
export function globMatches(pattern: string, text: string): boolean {
  const [expected, given] = [pattern.toLowerCase(), text.toLowerCase()];
  let [at, from] = [0, 0];
  let [star, starFrom] = [-1, 0];
  while (from < given.length) {
    if (expected[at] === "*") {
      star = at++;
      starFrom = from;
    } else if (at < expected.length && (expected[at] === "?" || expected[at] === given[from])) {
      at++;
      from++;
    } else if (star !== -1) {
      at = star + 1;
      from = ++starFrom;
    } else {
      return false;
    }
  }
  while (expected[at] === "*") at++;
  return at === expected.length;
}
