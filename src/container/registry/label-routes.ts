/**
 * LabelRoutes: the upstream servers set by a container's label. The author of a label controls a container, not the
 * host. So its servers are queried from inside the container unless the settings allow more, and the label's size is
 * limited. A container that a label names is queried only on a network of the container itself.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/text.ts";
import { isHostScoped } from "../../base/model/address.ts";
import type { LabelServers } from "../../base/model/name-choices.ts";
import {
  type NamedServer,
  type RouteText,
  isNodeServer,
  namedServerText,
  nodeInLabel,
  parseRoute,
  usualPort,
  isContainerServer,
} from "../../base/model/server-text.ts";
import type { Labels } from "../facts/labels.ts";
import type { RouteLayer } from "./routes.ts";

/** The label that sets a container's upstream servers, as `--dns` does: routes separated by blanks or commas. */
export const DNS_LABEL = "io.dns11.dns";

/** The routes of the label. Invalid ones are ignored, and the warning quotes the first of them. */
export function labelRoutes(
  labels: Labels,
  allowed: LabelServers,
): { readonly layer: RouteLayer; readonly warning?: string } {
  const { texts, rest } = textsOf(labels[DNS_LABEL] ?? "");
  const layer: RouteText[] = [];
  const servers = new Set<string>();
  let domains = 0;
  let [problem, leftOut]: (string | undefined)[] = [undefined, rest];
  for (const text of new Set(texts)) {
    try {
      const route = routeIn(text, allowed);
      for (const server of route.servers) servers.add(namedServerText(server));
      domains += route.domains.length;
      if (domains > LIMITS.labelDomains || servers.size > LIMITS.labelServers) {
        leftOut = text;
        break;
      }
      layer.push(route);
    } catch (error) {
      problem ??= shortened((error as Error).message, LIMITS.labelProblemChars);
    }
  }
  const warnings = [
    ...(problem === undefined ? [] : [`invalid label ${DNS_LABEL}: ${problem}`]),
    ...(leftOut === undefined ? [] : [tooMuchWarning(leftOut)]),
  ];
  return warnings.length === 0 ? { layer } : { layer, warning: warnings.join("; ") };
}

const SEPARATORS = /[\s,]+/;

/** The routes within the length limit, and the rest of the label. */
function textsOf(label: string): { readonly texts: readonly string[]; readonly rest: string | undefined } {
  let end = Math.min(label.length, LIMITS.labelChars + 1);
  // A route that does not fit completely is ignored.
  if (end < label.length || end > LIMITS.labelChars) while (end > 0 && !SEPARATORS.test(label.charAt(end - 1))) end--;
  const rest = label.slice(end).replace(/^[\s,]+/, "");
  return {
    texts: label
      .slice(0, end)
      .split(SEPARATORS)
      .filter((text) => text !== ""),
    rest: rest === "" ? undefined : rest,
  };
}

function tooMuchWarning(leftOut: string): string {
  const { labelDomains, labelServers, labelChars } = LIMITS;
  return (
    `label ${DNS_LABEL} is too large: everything from "${shortened(leftOut, LIMITS.labelCharsShown)}" on is ignored; ` +
    `the limit is ${labelDomains} domains and ${labelServers} servers in ${labelChars} characters`
  );
}

function routeIn(text: string, allowed: LabelServers): RouteText {
  const route = parseRoute(text, allowed === "container" ? "container" : "host");
  if (route.servers.some(isNodeServer)) throw new Error(nodeInLabel(text));
  if (allowed === "host") for (const server of route.servers) refuseHostOnlyServer(server);
  return { ...route, servers: route.servers.map(onlyShared) };
}

/** Whatever labels may do: a name is not an address, and may be that of a container which the asking one cannot reach. */
function onlyShared(server: NamedServer): NamedServer {
  return isContainerServer(server) ? { ...server, isShared: true } : server;
}

/** Only the operator may allow servers on other ports and at addresses that only the host reaches. */
function refuseHostOnlyServer(server: NamedServer): void {
  if (server === "host" || isContainerServer(server) || server.from !== "host") return;
  if (server.port === usualPort(server) && !isHostScoped(server.address)) return;
  throw new Error(
    `"${server.address}:${server.port}" would be queried from the host, where a label may use only port ${usualPort(server)} and no address ` +
      "that only the host reaches; to allow it, set label-servers: any",
  );
}
