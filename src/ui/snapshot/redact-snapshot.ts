/**
 * RedactSnapshot: replaces names and public addresses in a snapshot as `dns11 doctor --bundle` does: the same one by the same word
 * everywhere, so that the page still shows who sees whom.
 */
import type { Snapshot } from "../../api/snapshot.ts";
import { Redactor } from "../../doctor/bundle/redactor.ts";

/** Fields with a few fixed values, and numbers as text; a container called "up" must not change them. */
const KEPT = new Set(
  (
    "format takenAt version pid since mode ruleBackend isReady time first last lastSuccess until kind state states dns code " +
    "health result rcode type transport driver scope from ports counters recent capabilities keeper answers"
  ).split(" "),
);

export function redactSnapshot(snapshot: Snapshot): Snapshot {
  const redactor = redactorOf(snapshot);
  const shown = redactor.value(snapshot, KEPT) as Snapshot;
  return { ...shown, isRedacted: true };
}

function redactorOf({ status, containers, networks, events, failures, queries }: Snapshot): Redactor {
  const redactor = new Redactor();
  const all = containers?.containers ?? [];
  const happened = events?.events ?? [];
  const failing = failures?.failures ?? [];
  const asked = queries?.queries ?? [];
  const texts = (values: readonly (string | null | undefined)[]): string[] =>
    values.filter((value) => typeof value === "string");
  redactor.add("container", [
    ...(status?.containers ?? []).map(({ name }) => name),
    ...all.map(({ name }) => name),
    ...texts(happened.map(({ container }) => container)),
    ...failing.map(({ container }) => container),
    ...asked.map(({ container }) => container),
  ]);
  const places = [...all, ...happened, ...failing];
  redactor.add("project", [
    ...texts(places.map(({ project }) => project)),
    ...texts((networks?.networks ?? []).map(({ project }) => project)),
  ]);
  redactor.add("service", [
    ...texts(places.map(({ service }) => service)),
    ...all.flatMap((each) => each.networks.flatMap(({ names }) => names)),
  ]);
  redactor.add("network", [
    // The predefined ones, such as "host", are the same everywhere.
    ...(networks?.networks ?? []).filter(({ hasNames }) => hasNames).map(({ name }) => name),
    ...all.flatMap((each) => each.networks.filter(({ hasNames }) => hasNames).map(({ network }) => network)),
    ...texts(happened.map(({ network }) => network)),
  ]);
  redactor.add("id", [
    ...[...all, ...(networks?.networks ?? [])].flatMap(({ id }) => [id, id.slice(0, 12)]),
    ...texts(happened.map(({ containerId }) => containerId)),
  ]);
  redactor.addQueried(texts([...failing, ...asked, ...(failures?.misleading ?? [])].map(({ name }) => name)));
  return redactor;
}
