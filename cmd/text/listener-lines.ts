/**
 * ListenerLines: the listener on the host, and where others than containers may ask, as `dns11 status` shows them. Nothing where they
 * are off.
 */
import { counted } from "../../src/base/lib/counted.ts";
import type { ListenReports } from "../../src/base/model/listen-report.ts";
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

/** The addresses at which others than containers may ask, a line for each entry. */
export function listenLines(listen: ListenReports | null | undefined): Line[] {
  return (listen?.entries ?? []).map(({ name, addresses, allow, view, forward, problem }): Line => {
    const serving = addresses.filter(({ state }) => state === "serving").map(({ address }) => address);
    const others = addresses.flatMap(({ state, reason }) => (state === "serving" ? [] : [reason ?? "not ready yet"]));
    const what = `${view}${forward ? ", forwards" : ""}, for ${allow.join(", ")}`;
    const parts = [
      ...(serving.length === 0 ? [] : [`${serving.join(" and ")}: ${what}`]),
      ...others,
      ...(problem === undefined ? [] : [problem]),
    ];
    const isFine = others.length === 0 && problem === undefined;
    const colour = isFine ? undefined : serving.length === 0 ? "red" : "yellow";
    return { label: `listen ${name}`, text: parts.join("; "), colour };
  });
}
