/**
 * Which route a question takes when nobody here knows the name: the one with the longest suffix that the name ends with.
 */
import { sameBytes } from "../../base/dns/name.ts";
import type { Route, Upstreams } from "../../base/model/view.ts";
import type { Question } from "../wire/question.ts";

export function routeOf(question: Question, { routes }: Upstreams): Route {
  const last = routes.length - 1;
  for (let i = 0; i < last; i++) {
    const route = routes[i] as Route;
    if (endsWith(question, route)) return route;
  }
  return routes[last] as Route;
}

export type Suffix = Pick<Route, "suffix" | "labelCount">;

/** Labels are compared from a label's beginning, so that "notcorp.example" is not below "corp.example". */
export function endsWith(question: Question, { suffix, labelCount }: Suffix): boolean {
  const labels = question.labelCount - labelCount;
  if (labels < 0) return false;
  const start = question.lengthOf[labels] as number;
  return question.foldedLength - start === suffix.length && sameBytes(question.folded, start, suffix, 0, suffix.length);
}
