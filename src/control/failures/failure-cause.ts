/**
 * FailureCause: the most likely cause of a failure in a failure table, by what is known now.
 */
import type { Cause } from "../../api/causes.ts";
import { rcodeName } from "../../base/dns/rcode.ts";
import { typeName } from "../../base/dns/record-type.ts";
import type { FailureRecord } from "../../base/model/failure-record.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { FailureTable } from "../../query/failures/failure-table.ts";
import { causesOf } from "../causes/causes.ts";
import { namespaceOwner } from "../containers/find-container.ts";
import type { Containers } from "../situation/ports.ts";
import type { Situations } from "../situation/situations.ts";

/** null if names are hidden, or the container has ended. */
export function failureCause(
  { containers: { facts } }: { readonly containers: Pick<Containers, "facts"> },
  { containerId }: FailureTable,
  record: FailureRecord,
  situations: Situations,
): Cause | null {
  const fact = facts.get(containerId);
  const { name } = record;
  if (name === null || fact === undefined) return null;
  const [first = null] = causesOf(
    situations.of(fact, ownerOf(facts, fact), {
      name,
      typeName: typeName(record.type),
      failure: resultOf(record),
      isFromUpstream: false,
      isTruncated: false,
    }),
  );
  return first;
}

export function resultOf({ rcode }: FailureRecord): string {
  return rcode === 0 ? "NODATA" : rcodeName(rcode);
}

export function ownerOf(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact {
  try {
    return namespaceOwner(facts, fact);
  } catch {
    // Its owner has ended, so it will, too.
    return fact;
  }
}
