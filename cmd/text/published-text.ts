/**
 * PublishedText: what other machines know of a container through etcd, for people: as a cell of a table and as a sentence.
 */
import { DELIBERATE_REASONS, type PublishedReport } from "../../src/api/published.ts";
import type { Cell } from "./table.ts";
import type { Colour } from "./terminal.ts";

/** Reasons in a few words, by their code. */
const SHORT: Readonly<Record<string, string>> = {
  PUBLISH_NO_PORT: "no published port",
  PUBLISH_OTHER_ADDRESS: "other address",
  PUBLISH_NO_ADDRESS: "no address",
  PUBLISH_UNNAMED_PORTS: "unnamed ports",
  PUBLISH_TOO_MANY: "too many",
  PUBLISH_INVALID: "invalid label",
  ETCD_MACHINE_TAKEN: "name taken",
  ETCD_PERMISSION: "no permission",
  ETCD_NO_SPACE: "etcd is full",
  ETCD_LEASE_LOST: "lease ended",
  ETCD_UNREACHABLE: "etcd is away",
  ETCD_CERTIFICATE: "wrong certificate",
  ETCD_CREDENTIALS: "wrong password",
  ETCD_TOKEN: "no user",
};
const NO_SERVICE = "PUBLISH_NO_SERVICE";

export function publishedCell(report: PublishedReport | undefined): Cell {
  if (report === undefined || report.code === NO_SERVICE) return "-";
  const { state, code, addresses, ports } = report;
  if (state === "published") return [addresses.join(","), ...ports].join(" ");
  if (state === "pending") return { text: "pending", colour: "yellow" };
  const colour: Colour = DELIBERATE_REASONS.has(code) ? "dim" : "red";
  return { text: `no (${SHORT[code ?? ""] ?? "see dns11 doctor"})`, colour };
}

/** Begins after the name of the container. */
export function publishedSentence({ state, names, addresses, reason, remedy }: PublishedReport): string {
  if (state === "published") return `is published as ${names.at(-1) ?? ""} at ${addresses.join(" and ")}`;
  if (state === "pending") return "is not published yet: it is being written to etcd";
  return `is not published: ${(reason ?? "etcd has not replied yet").replace(/\.$/, "")}. ${remedy ?? ""}`.trimEnd();
}
