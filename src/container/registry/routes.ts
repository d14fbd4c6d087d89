/**
 * Routes: the upstream servers of one container by domain, merged from several layers. The longest suffix wins; for
 * equal suffixes the layer with the higher precedence does (Directory has the order), and the servers that Docker would
 * use come last. Servers queried from the host are left out if the container has no external access. That is decided
 * here, before any cache lookup.
 */
import { type NamedServer, type RouteText, domainLabels } from "../../base/model/server-text.ts";
import type { Route, Server } from "../../base/model/view.ts";

/** The routes of one source, such as the settings or a label, as they were written and in that order. */
export type RouteLayer = readonly LayerRoute[];

interface LayerRoute extends RouteText {
  /** The source, in words. */
  readonly by?: string;
}

export function routeLayer(by: string, routes: readonly RouteText[]): RouteLayer {
  return routes.map((route) => ({ ...route, by }));
}

export interface RouteParts {
  /** In order of precedence, highest first. */
  readonly layers: readonly RouteLayer[];
  /** The servers that Docker would use for every name, and where that list comes from. */
  readonly fallback: readonly Server[];
  readonly fallbackBy?: string;
  /** The host's current servers. */
  readonly host: readonly Server[];
  readonly hasExternalAccess: boolean;
}

export function routesOf({ layers, fallback, fallbackBy, host, hasExternalAccess }: RouteParts): Route[] {
  const byDomain = new Map<string, MergedRoute>();
  for (const layer of layers) {
    for (const [domain, merged] of mergeLayer(layer)) if (!byDomain.has(domain)) byDomain.set(domain, merged);
  }
  if (!byDomain.has("")) byDomain.set("", { servers: fallback, isLocal: false, by: fallbackBy });
  return [...byDomain]
    .map(([domain, { servers, isLocal, by }]): Route => {
      const suffix = domainLabels(domain);
      const all = isLocal ? [] : servers.flatMap((server) => (server === "host" ? host : server));
      const withheld = hasExternalAccess ? [] : all.filter(({ from }) => from === "host");
      return {
        suffix,
        labelCount: domain === "" ? 0 : domain.split(".").length,
        servers: all.filter(({ from }) => from !== "host" || hasExternalAccess),
        isLocal,
        ...(by !== undefined && { by }),
        ...(withheld.length > 0 && { withheld }),
      };
    })
    .toSorted((a, b) => b.labelCount - a.labelCount);
}

interface MergedRoute {
  readonly servers: readonly NamedServer[];
  readonly isLocal: boolean;
  readonly by: string | undefined;
}

/** The routes of one layer by domain: several routes for a domain are merged into one list of servers. */
function mergeLayer(layer: RouteLayer): Map<string, MergedRoute> {
  const byDomain = new Map<string, MergedRoute>();
  for (const { domains, servers, isLocal, by } of layer) {
    for (const domain of domains) {
      const before = byDomain.get(domain);
      byDomain.set(domain, {
        servers: [...(before?.servers ?? []), ...servers],
        isLocal: isLocal && (before?.isLocal ?? true),
        by: before?.by ?? by,
      });
    }
  }
  return byDomain;
}
