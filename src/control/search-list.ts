/**
 * SearchList: what the C library in a container makes of a name, by the search list and the ndots of its resolv.conf. dns11
 * applies neither; it only tells, and asks so where somebody wants it to.
 */
import { LIMITS } from "../base/limits.ts";
import type { ResolvConf } from "../container/watch/resolv-conf.ts";
import { type ParsedQuestion, parseQuestion } from "../base/model/question-text.ts";

/** The names that a program asks for, in the order of the C library. */
export function searchNames(
  question: ParsedQuestion,
  { search, options }: Pick<ResolvConf, "search" | "options">,
): ParsedQuestion[] {
  if (question.isAbsolute || question.labels.length === 0) return [question];
  const completed = search.slice(0, LIMITS.lookupNames - 1).flatMap((domain) => {
    try {
      return [parseQuestion(`${question.name}.${domain.replace(/\.$/, "")}`, question.typeName)];
    } catch {
      // A domain that makes no name, or one too long, is passed over.
      return [];
    }
  });
  const dots = question.name.split(".").length - 1;
  return dots >= ndotsOf(options) ? [question, ...completed] : [...completed, question];
}

/** As resolv.conf(5) has it: 1, if nothing is said. */
export function ndotsOf(options: readonly string[]): number {
  const said = options.map((option) => /^ndots:(\d+)$/.exec(option)?.[1]).findLast((number) => number !== undefined);
  return said === undefined ? 1 : Math.min(15, Number(said));
}
