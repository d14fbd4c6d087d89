// Owns the differences that are known and left, each with its reason. The test holds the list to be exact: whatever else
// differs fails it, and so does what is listed and differs no longer.

import type { Difference } from "./both.ts";
import { FILLED_UP } from "./compare.ts";
import type { Question } from "./question.ts";

export type Known = {
  readonly reason: string;
  // The questions that it shows in.
  readonly labels: RegExp;
  // How it is told where it may show in others, too, that are drawn at random.
  readonly what?: string;
};

export const KNOWN: readonly Known[] = [
  {
    reason:
      "an alias that ends in a backslash is found by a name with a dot inside a label, which Docker takes apart there",
    labels: /^(A|AAAA|MX) \\\.(net1)?$/,
  },
  {
    reason:
      "a datagram that nobody can read and that bears another id: Docker gives the server up, dns11 goes on waiting",
    labels: /^stray: /,
  },
  {
    reason: "data that end early where a field ends: Docker fills them up with zeros, dns11 hands them on as they came",
    labels: /^raw (mx0|soa0|soashort|ds3|rrsigshort)( .*)?$/,
    what: FILLED_UP,
  },
  {
    reason: "an empty name of a protocol in a service parameter: Docker reads it, but cannot write it",
    labels: /^raw svcbemptyprotocol( .*)?$|^record svcb with an empty alpn(, forwarded| as an answer)$/,
  },
];

// Whether the two are known to differ over this question.
export function shouldDiffer(question: Question): boolean {
  return KNOWN.some(({ labels }) => labels.test(question.label));
}

export function isKnown({ question, what }: Difference): boolean {
  return shouldDiffer(question) || KNOWN.some((known) => known.what === what);
}
