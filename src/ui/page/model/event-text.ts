/** EventText: an event as a sentence, and whether it is good news. */
import type { EventReport } from "../../../api/events.ts";

export interface EventText {
  readonly tone: "ok" | "bad" | "warn" | "plain";
  readonly text: string;
}

type Kind = EventReport["kind"];

const TEXTS: Readonly<Record<Kind, (event: Named) => string>> = {
  "container-started": ({ container }) => `${container} started`,
  "container-stopped": ({ container }) => `${container} stopped`,
  "container-died": ({ container, exit }) => `${container} exited with code ${exit}`,
  "network-created": ({ network }) => `network ${network} created`,
  "network-removed": ({ network }) => `network ${network} removed`,
  "network-joined": ({ container, network }) => `${container} joined ${network}`,
  "network-left": ({ container, network }) => `${container} left ${network}`,
  attached: ({ container }) => `dns11 answers ${container}`,
  "handed-back": ({ container }) => `${container} handed back to Docker's resolver`,
  "attach-failed": ({ container }) => `dns11 cannot serve ${container}`,
  "server-down": ({ server }) => `nameserver ${server} is down`,
  "server-up": ({ server }) => `nameserver ${server} is up`,
  "engine-lost": () => "the engine does not respond",
  "engine-connected": () => "connected to the engine",
  "settings-reloaded": () => "settings reloaded",
};

const BAD: ReadonlySet<Kind> = new Set(["container-died", "attach-failed", "server-down", "engine-lost"]);
const WARN: ReadonlySet<Kind> = new Set(["container-stopped", "network-left", "network-removed", "handed-back"]);
const OK: ReadonlySet<Kind> = new Set(["attached", "server-up", "engine-connected"]);

interface Named {
  readonly container: string;
  readonly network: string;
  readonly server: string;
  readonly exit: string;
}

export function eventText(event: EventReport): EventText {
  const { kind, container, network, server, exitCode, detail } = event;
  const named = {
    container: container ?? "",
    network: network ?? "",
    server: server ?? "",
    exit: String(exitCode ?? "?"),
  };
  // A newer dns11 may send others.
  const text = TEXTS[kind]?.(named) ?? kind;
  const tone = BAD.has(kind) ? "bad" : WARN.has(kind) ? "warn" : OK.has(kind) ? "ok" : "plain";
  return { tone, text: detail === null ? text : `${text}: ${detail}` };
}
