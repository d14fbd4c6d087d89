/**
 * PublishedReport: what becomes of one container in etcd, from what is wanted of it and what the publisher has written.
 */
import type { PublishedReport } from "../../api/published.ts";
import type { Fault } from "../../base/lib/fault.ts";
import type { Published } from "../../container/publish/publication.ts";

/** The publisher; undefined before there is one. */
type Publishing = { readonly root: string; readonly fault: Fault | undefined; has(key: string): boolean } | undefined;

export function publishedReport(published: Published, zone: string, publishing: Publishing): PublishedReport {
  if ("leftOut" in published) {
    const nowhere = { zone, key: null, names: [], addresses: [], ports: [] };
    return { state: "unpublished", ...whyOf(published.leftOut), ...nowhere };
  }
  const { key, ...place } = published;
  const isWritten = publishing?.has(key) === true;
  return {
    state: isWritten ? "published" : publishing?.fault === undefined ? "pending" : "unpublished",
    ...whyOf(isWritten ? undefined : publishing?.fault),
    zone,
    key: publishing === undefined ? null : publishing.root + key,
    ...place,
  };
}

function whyOf(fault: Fault | undefined): Pick<PublishedReport, "code" | "reason" | "remedy"> {
  return { code: fault?.code ?? null, reason: fault?.message ?? null, remedy: fault?.remedy ?? null };
}
