/**
 * PublishedReport: what becomes of one container in etcd, from what is wanted of it and what the publisher has written.
 */
import type { PublishedReport } from "../api/published.ts";
import type { Fault } from "../base/lib/fault.ts";
import { addressText } from "../base/model/address.ts";
import { type PublishedMember, hostOnMachine, portText } from "../container/names/zone/published-member.ts";
import type { Published } from "../container/publish/publication.ts";

/** Where it is published. */
interface Place {
  readonly zone: string;
  readonly machine: string;
}

/** The publisher; undefined before there is one. */
type Publishing = { readonly root: string; readonly fault: Fault | undefined; has(key: string): boolean } | undefined;

export function publishedReport(published: Published, place: Place, publishing: Publishing): PublishedReport {
  const { zone } = place;
  if ("leftOut" in published) {
    const nowhere = { zone, key: null, names: [], addresses: [], ports: [] };
    return { state: "unpublished", ...whyOf(published.leftOut), ...nowhere };
  }
  const { key, member } = published;
  const { v4, v6, ports } = member;
  const isWritten = publishing?.has(key) === true;
  return {
    state: isWritten ? "published" : publishing?.fault === undefined ? "pending" : "unpublished",
    ...whyOf(isWritten ? undefined : publishing?.fault),
    zone,
    key: publishing === undefined ? null : publishing.root + key,
    names: namesOf(member, place),
    addresses: [...v4, ...v6].map((each) => addressText(each)),
    ports: ports.map((each) => portText(each)),
  };
}

function whyOf(fault: Fault | undefined): Pick<PublishedReport, "code" | "reason" | "remedy"> {
  return { code: fault?.code ?? null, reason: fault?.message ?? null, remedy: fault?.remedy ?? null };
}

/** That of the service has no address of it while it is not ready. */
function namesOf(member: PublishedMember, { zone, machine }: Place): string[] {
  const { project, service, isReady } = member;
  const below = `${service}.${project}.${isReady ? "svc" : "endpoints"}.${zone}`;
  return [below, `${hostOnMachine(member, machine)}.${below}`];
}
