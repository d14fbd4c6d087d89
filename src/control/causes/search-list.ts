/**
 * SearchList: the names that the C library in a container tries for a name, by the search list and ndots of its resolv.conf.
 * dns11 applies neither when it answers; causes mention them, and a lookup applies them on request.
 */
import { LIMITS } from "../../base/limits.ts";
import type { ResolvConf } from "../../container/watch/resolv-conf.ts";
import { type ParsedQuestion, parseQuestion } from "../../base/model/question-text.ts";

/** The names that a program queries, in the order of the C library. */
export function searchNames(
  question: ParsedQuestion,
  { search, options }: Pick<ResolvConf, "search" | "options">,
): ParsedQuestion[] {
  if (question.isAbsolute || question.labels.length === 0) return [question];
  const completed = search.slice(0, LIMITS.lookupNames - 1).flatMap((domain) => {
    try {
      return [parseQuestion(`${question.name}.${domain.replace(/\.$/, "")}`, question.typeName)];
    } catch {
      // A domain that results in an invalid name is skipped.
      return [];
    }
  });
  const dots = question.name.split(".").length - 1;
  return dots >= ndotsOf(options) ? [question, ...completed] : [...completed, question];
}

/** The default is 1, as in resolv.conf(5). */
export function ndotsOf(options: readonly string[]): number {
  const value = options.map((option) => /^ndots:(\d+)$/.exec(option)?.[1]).findLast((number) => number !== undefined);
  return value === undefined ? 1 : Math.min(15, Number(value));
}
