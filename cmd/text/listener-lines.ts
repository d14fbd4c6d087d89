/**
 * ListenerLines: the listener on the host, as `dns11 status` shows it. Nothing where it is off.
 */
import { counted } from "../../src/base/lib/counted.ts";
import type { ListenerReport } from "../../src/base/model/listener-report.ts";
import type { Line } from "./lines.ts";

export function listenerLines(listener: ListenerReport | null | undefined): Line[] {
  if (listener === null || listener === undefined) return [];
  const { state, addresses, askers, ambiguous, builds, reason = "" } = listener;
  const label = "listener";
  if (state === "failed") return [{ label, text: reason, colour: "red" }];
  if (state !== "serving") return [{ label, text: "not ready yet", colour: "yellow" }];
  const steps = builds === undefined ? "" : ` and builds (names of ${builds.network})`;
  const text = `${addresses.join(" and ")}, for ${counted(askers, "container")}${steps}`;
  if (builds?.isKnown === false)
    return [{ label, text: `${text}; no container has been on the network ${builds.network} yet`, colour: "yellow" }];
  if (ambiguous.length === 0) return [{ label, text }];
  const nobodys = `${text}; not for ${ambiguous.join(", ")}, which several containers have`;
  return [{ label, text: nobodys, colour: "yellow" }];
}
