/**
 * CauseSentence: one sentence for all failures of a cause, whichever container looked up whichever name.
 */
import type { Cause, CauseCode } from "../../../api/causes.ts";

/** Names that nothing here has: there is nothing to say about one of them that is not true of all. */
const UNKNOWN: Readonly<Partial<Record<CauseCode, string>>> = {
  "unknown-name": "no container on this engine has any of these names",
  "does-not-exist": "these names do not exist, according to their upstream servers",
};
const ELSEWHERE: ReadonlySet<CauseCode> = new Set(["other-network", "other-project"]);

/** That of the API if it concerns one name in one container. */
export function causeSentence(cause: Cause, names: readonly string[], containers: readonly string[]): string {
  if (names.length <= 1 && containers.length <= 1) return cause.sentence;
  const { about: network, code, sentence } = cause;
  if (network !== undefined && ELSEWHERE.has(code)) {
    const [name, container] = [names.length === 1 ? `"${names[0]}" is` : "these names are", containers[0] ?? ""];
    return `${name} on network ${network}; ${containers.length === 1 ? `${container} is` : "these containers are"} not on it`;
  }
  if (names.length === 1) return sentence;
  return UNKNOWN[code] ?? `${sentence}; the same for the other names`;
}
