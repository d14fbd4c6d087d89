/**
 * Selects the route of a question that is not local: the one with the longest suffix that matches the name.
 */
import { sameBytes } from "../../base/dns/name.ts";
import type { Route, Upstreams } from "../../base/model/view.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";

export function routeOf(question: QuestionName, { routes }: Upstreams): Route {
  const last = routes.length - 1;
  for (let i = 0; i < last; i++) {
    const route = routes[i] as Route;
    if (endsWith(question, route)) return route;
  }
  return routes[last] as Route;
}

export type Suffix = Pick<Route, "suffix" | "labelCount">;

/** Compares whole labels, so that "notcorp.example" is not below "corp.example". */
export function endsWith(question: QuestionName, { suffix, labelCount }: Suffix): boolean {
  const labels = question.labelCount - labelCount;
  if (labels < 0) return false;
  const start = question.lengthOf[labels] as number;
  return question.foldedLength - start === suffix.length && sameBytes(question.folded, start, suffix, 0, suffix.length);
}
