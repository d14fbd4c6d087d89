import type { Status } from "../../api/status.ts";
import type { StatusLine } from "../contract.ts";

export function statusLines({ settings }: Pick<Status, "settings">): StatusLine[] {
  const zones = settings["zone"]?.value;
  return Array.isArray(zones) && zones.length > 0 ? [{ label: "zones", text: zones.join(", ") }] : [];
}
