// The accepted differences between the two resolvers, each with its reason. The list is exact: any other difference fails
// the test, and so does a listed one that no longer occurs.

import type { Difference } from "./run-both.ts";
import { FILLED_UP } from "./compare.ts";
import type { Question } from "./question.ts";

export type KnownDifference = {
  readonly reason: string;
  // The questions where it occurs.
  readonly labels: RegExp;
  // Its text in `Difference.what`, if it may also occur with random questions.
  readonly what?: string;
};

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    reason:
      "an alias that ends in a backslash matches a name with a dot inside a label, because Docker splits the name there",
    labels: /^(A|AAAA|MX) \\\.(net1)?$/,
  },
  {
    reason: "a malformed datagram with another id: Docker gives up on the server, dns11 keeps waiting",
    labels: /^stray: /,
  },
  {
    reason: "record data that ends early at a field boundary: Docker pads it with zeros, dns11 forwards it unchanged",
    labels: /^raw (mx0|soa0|soashort|ds3|rrsigshort)( .*)?$/,
    what: FILLED_UP,
  },
  {
    reason: "an empty protocol name in a service parameter: Docker parses it, but cannot write it",
    labels: /^raw svcbemptyprotocol( .*)?$|^record svcb with an empty alpn(, forwarded| as an answer)$/,
  },
];

// Whether a known difference applies to this question.
export function shouldDiffer(question: Question): boolean {
  return KNOWN_DIFFERENCES.some(({ labels }) => labels.test(question.label));
}

export function isKnown({ question, what }: Difference): boolean {
  return shouldDiffer(question) || KNOWN_DIFFERENCES.some((known) => known.what === what);
}
