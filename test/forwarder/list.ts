import { BROKEN_SERVERS, NOT_BROKEN_SERVERS } from "./broken-servers.ts";
import { EDNS, NOT_EDNS } from "./edns.ts";
import { FORWARDING, NOT_FORWARDING } from "./forwarding.ts";
import { RFC8906 } from "./rfc8906.ts";
import type { Scenario, Unsuitable } from "./scenario.ts";
import { STANDARDS } from "./standards.ts";
import { NOT_STALE, STALE } from "./stale.ts";
import { NOT_TIMES, TIMES } from "./times.ts";

interface Group {
  readonly title: string;
  readonly scenarios: readonly Scenario[];
  readonly unsuitable: readonly Unsuitable[];
}

export const GROUPS: readonly Group[] = [
  { title: "Forwarding", scenarios: FORWARDING, unsuitable: NOT_FORWARDING },
  { title: "How long an answer is kept", scenarios: TIMES, unsuitable: NOT_TIMES },
  { title: "Expired answers and failures", scenarios: STALE, unsuitable: NOT_STALE },
  { title: "EDNS", scenarios: EDNS, unsuitable: NOT_EDNS },
  { title: "RFC 8906, failure to communicate", scenarios: RFC8906, unsuitable: [] },
  { title: "More of the standards", scenarios: STANDARDS, unsuitable: [] },
  { title: "Broken servers", scenarios: BROKEN_SERVERS, unsuitable: NOT_BROKEN_SERVERS },
];
export const SCENARIOS: readonly Scenario[] = GROUPS.flatMap(({ scenarios }) => scenarios);
