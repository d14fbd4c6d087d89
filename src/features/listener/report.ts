import type { BuildsReport } from "../../api/listener.ts";
import { startRemedy } from "../../api/state-paths.ts";
import type { Status } from "../../api/status.ts";
import { counted } from "../../base/lib/text.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import { LISTENER_ADDRESSES, isListenerAddress } from "../../base/model/listener-addresses.ts";
import { nameQuery } from "../../base/model/name-query.ts";
import { isUserDefined } from "../../container/facts/fact.ts";
import { exchange } from "../../container/rules/exchange.ts";
import type { CheckedContainer, CheckedMachine, StatusLine } from "../contract.ts";

export const checks = {
  "host-listener": {
    title: "listener on the host",
    examines:
      "whether the [listener on the host](listener.md) answers, and whether Docker sends it what its own resolver does not know",
  },
  "listener-query": {
    title: "query to the listener",
    examines: "whether the container's queries reach the listener on the host: a firewall may drop them",
  },
};
const finding = findingsOf(checks);

const CODE = "host-listener";
/** About as long as clients wait for a resolver. */
const REPLY_TIMEOUT_MS = 3_000;
const TURN_ON = `Set listener: true and run \`dns11 reload\`, or remove the address from "dns" in daemon.json and restart Docker.`;
/** Whatever answers: it is never forwarded. */
const LOCAL_NAME = "localhost";
/** There is no way to the host: all networks of the container are internal, or have no such family. */
const NO_ROUTE = new Set(["ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"]);

export function statusLines({ listener }: Pick<Status, "listener">): StatusLine[] {
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

/** Whether dns11 answers at its address of the host, and whether Docker sends it what its own resolver does not know. */
export function findings({ status, daemonDns }: CheckedMachine): Finding[] {
  const asked = daemonDns?.filter((address) => isListenerAddress(address)) ?? [];
  const listener = status?.listener ?? undefined;
  if (listener === undefined) {
    if (asked.length === 0) return [];
    const why = status === undefined ? "dns11 is not running" : "the setting listener is off";
    const detail = `Docker sends containers' queries for other names to ${asked.join(" and ")}, where nothing answers: ${why}`;
    return [finding(CODE, "problem", detail, status === undefined ? startRemedy("sudo dns11 run") : TURN_ON)];
  }
  const { state, addresses, askers, ambiguous, builds, reason = "" } = listener;
  if (state === "opening") return [finding(CODE, "warning", "not ready yet", "Run `dns11 doctor` again in a moment.")];
  if (state !== "serving") return [finding(CODE, "problem", reason, "The reason says what to change.")];
  const works = `answers at ${addresses.join(" and ")}, for ${counted(askers, "container")}`;
  if (ambiguous.length > 0) {
    const remedy = "Give the networks of these containers subnets that do not overlap.";
    return [finding(CODE, "warning", `${works}; several containers have the address ${ambiguous.join(", ")}`, remedy)];
  }
  return [daemonFinding(works, asked, daemonDns), ...buildsFindings(builds, asked, daemonDns)];
}

/** Steps of builds ask the servers in daemon.json, and nobody else. */
function buildsFindings(
  builds: BuildsReport | undefined,
  asked: readonly string[],
  daemonDns: readonly string[] | undefined,
): Finding[] {
  if (builds === undefined) return [];
  const base = { code: CODE, what: "builds at the listener" } as const;
  if (!builds.isKnown) {
    const detail = `no container has been on the network ${builds.network} yet, whose names steps of docker build are to resolve`;
    return [{ ...base, state: "warning", detail, remedy: "Correct the setting builds, or start a container there." }];
  }
  if (daemonDns !== undefined && asked.length === 0) {
    const remedy = `Set {"dns": ["${LISTENER_ADDRESSES.ipv4}"]} in daemon.json and restart Docker, or remove the setting builds.`;
    return [{ ...base, state: "warning", detail: "steps of docker build do not ask the listener", remedy }];
  }
  return [{ ...base, state: "ok", detail: `steps of docker build resolve the names of ${builds.network}` }];
}

function daemonFinding(works: string, asked: readonly string[], daemonDns: readonly string[] | undefined): Finding {
  if (daemonDns === undefined) return finding(CODE, "ok", `${works}; the daemon.json of Docker cannot be read`);
  const others = daemonDns.filter((address) => !asked.includes(address));
  if (asked.length === 0) return finding(CODE, "ok", `${works}; Docker itself does not ask it`);
  if (others.length === 0) return finding(CODE, "ok", `${works}; Docker asks it, and no other server`);
  const detail = `${works}; Docker also asks ${others.join(", ")}, where dns11 does not see the queries`;
  return finding(CODE, "warning", detail, `Let "dns" in daemon.json list ${LISTENER_ADDRESSES.ipv4} only.`);
}

/** Whether a container's queries get there. Finds nothing where the listener does not answer, or where the container has no way there. */
export async function containerFindings(
  { fact, inside }: Pick<CheckedContainer, "fact" | "inside">,
  { status, daemonDns }: CheckedMachine,
): Promise<Finding[]> {
  const listener = status?.listener;
  if (listener?.state !== "serving" || inside === undefined) return [];
  const { within, announce } = inside;
  const message = (id: number): Buffer => nameQuery(LOCAL_NAME, "A", id);
  const isNeeded =
    fact.endpoints.every(({ networkName }) => !isUserDefined(networkName)) ||
    daemonDns?.some((address) => isListenerAddress(address)) === true;
  const ofAddresses = await Promise.all(
    listener.addresses.map(async (destination) => {
      const legs = await exchange(within, { destination, message, announce, waitMs: REPLY_TIMEOUT_MS });
      return legs.flatMap(({ protocol, reply, failure }): Finding[] => {
        if (NO_ROUTE.has(failure ?? "")) return [];
        const what = `query from the container to ${destination} (${protocol})`;
        const base = { code: "listener-query", what } as const;
        if (reply !== undefined) return [{ ...base, state: "ok", detail: "dns11 answers" }];
        const detail = failure === undefined ? `no reply within ${REPLY_TIMEOUT_MS / 1000} s` : failure;
        const remedy = `Let the host's firewall accept port 53 from the container's network, as in: ufw allow in to ${destination} port 53`;
        return [{ ...base, state: isNeeded ? "problem" : "warning", detail, remedy }];
      });
    }),
  );
  return ofAddresses.flat();
}
