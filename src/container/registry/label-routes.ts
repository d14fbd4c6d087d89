/**
 * LabelRoutes: whom a container's label wants asked. Whoever writes a label speaks for a container, not for the host: so
 * its servers are asked from inside the container unless settings allow more, and how much it may say is bounded.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/shortened.ts";
import { isHostScoped } from "../../base/model/address.ts";
import type { LabelServers } from "../../base/model/label-policy.ts";
import { DNS_PORT, type NamedServer, type RouteText, parseRoute, serverText } from "../../base/model/server-text.ts";
import type { Labels } from "./labels.ts";
import type { RouteLayer } from "./routes.ts";

/** Where a container itself says whom to ask, as `--dns` does: texts with blanks or commas between them. */
export const DNS_LABEL = "io.dns11.dns";

/** What a label says; texts that are wrong are left out, and the first of them is told. */
export function labelRoutes(
  labels: Labels,
  place: LabelServers,
): { readonly say: RouteLayer; readonly warning?: string } {
  const { texts, rest } = textsOf(labels[DNS_LABEL] ?? "");
  const say: RouteText[] = [];
  const servers = new Set<string>();
  let domains = 0;
  let [problem, leftOut]: (string | undefined)[] = [undefined, rest];
  for (const text of new Set(texts)) {
    try {
      const route = routeIn(text, place);
      for (const server of route.servers) servers.add(server === "host" ? server : serverText(server));
      domains += route.domains.length;
      if (domains > LIMITS.labelDomains || servers.size > LIMITS.labelServers) {
        leftOut = text;
        break;
      }
      say.push(route);
    } catch (error) {
      problem ??= shortened((error as Error).message, LIMITS.labelProblemChars);
    }
  }
  const warnings = [
    ...(problem === undefined ? [] : [`its label ${DNS_LABEL} is wrong: ${problem}`]),
    ...(leftOut === undefined ? [] : [tooMuchWarning(leftOut)]),
  ];
  return warnings.length === 0 ? { say } : { say, warning: warnings.join("; ") };
}

const BETWEEN = /[\s,]+/;

/** The texts that fit, and what comes after them. */
function textsOf(label: string): { readonly texts: readonly string[]; readonly rest: string | undefined } {
  let end = Math.min(label.length, LIMITS.labelChars + 1);
  // A text of which a part does not fit is left out whole.
  if (end < label.length || end > LIMITS.labelChars) while (end > 0 && !BETWEEN.test(label.charAt(end - 1))) end--;
  const rest = label.slice(end).replace(/^[\s,]+/, "");
  return {
    texts: label
      .slice(0, end)
      .split(BETWEEN)
      .filter((text) => text !== ""),
    rest: rest === "" ? undefined : rest,
  };
}

function tooMuchWarning(leftOut: string): string {
  const { labelDomains, labelServers, labelChars } = LIMITS;
  return (
    `its label ${DNS_LABEL} says too much: "${shortened(leftOut, LIMITS.labelCharsShown)}" and all that follows is left out; ` +
    `it may name ${labelDomains} domains and ${labelServers} servers in ${labelChars} characters`
  );
}

function routeIn(text: string, place: LabelServers): RouteText {
  const route = parseRoute(text, place === "container" ? "container" : "host");
  if (place === "host") for (const server of route.servers) refuseHostOnlyServer(server);
  return route;
}

/** What listens at other ports, or for the host alone, is the operator's to open. */
function refuseHostOnlyServer(server: NamedServer): void {
  if (server === "host" || server.from !== "host") return;
  if (server.port === DNS_PORT && !isHostScoped(server.address)) return;
  throw new Error(
    `"${server.address}:${server.port}" would be asked from the host, where a label may name no port but ${DNS_PORT} and no address ` +
      "that only the host reaches; --label-servers any allows it",
  );
}
