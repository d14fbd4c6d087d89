/**
 * Routes: the upstream servers of one container by domain, merged from several layers. The longest suffix wins; for
 * equal suffixes the layer with the higher precedence does (`routingOf` has the order), and the servers that Docker would
 * use come last. Servers queried from the host are left out if the container has no external access. That is decided
 * here, before any cache lookup. A route of nothing but containers that cannot be queried has no servers, or is passed
 * over, as the settings say.
 */
import {
  type NamedServer,
  type RouteText,
  domainLabels,
  namedServerText,
  type ContainerServer,
  isContainerServer,
} from "../../base/model/server-text.ts";
import type { MissingServer, Route, Server } from "../../base/model/view.ts";

/** The routes of one source, such as the settings or a label, as they were written and in that order. */
export type RouteLayer = readonly LayerRoute[];

interface LayerRoute extends RouteText {
  /** The source, in words. */
  readonly by?: string;
}

export function routeLayer(by: string, routes: readonly RouteText[]): RouteLayer {
  return routes.map((route) => ({ ...route, by }));
}

/** Why a container is no server of another. */
export interface NotFound {
  readonly reason: string;
  /** Whatever the settings say, the next route applies. */
  readonly isPassedOver?: true;
}

/** The server that a container is for names below a domain; "itself": it is the one that queries; "later": not known yet. */
export type FindContainer = (server: ContainerServer, domain: string) => Server | NotFound | "itself" | "later";

export interface ContainerRules {
  readonly find: FindContainer;
  /** Whether the next layer applies where no container of a route can be queried. */
  readonly fallsBack: boolean;
}

interface RouteParts {
  /** In order of precedence, highest first. */
  readonly layers: readonly RouteLayer[];
  readonly containers: ContainerRules;
  /** The servers that Docker would use for every name, and where that list comes from. */
  readonly fallback: readonly Server[];
  readonly fallbackBy?: string;
  /** The host's current servers. */
  readonly host: readonly Server[];
  readonly hasExternalAccess: boolean;
}

export function routesOf({ layers, containers, fallback, fallbackBy, host, hasExternalAccess }: RouteParts): Route[] {
  const last = { servers: fallback, isLocal: false, by: fallbackBy, missing: [] };
  return [...selectRoutes(layers, containers, last)]
    .map(([domain, { servers, isLocal, by, missing }]): Route => {
      const suffix = domainLabels(domain);
      const all = isLocal ? [] : servers.flatMap((server) => (server === "host" ? host : server));
      const withheld = hasExternalAccess ? [] : all.filter(isBeyond);
      return {
        suffix,
        labelCount: domain === "" ? 0 : domain.split(".").length,
        servers: all.filter((server) => hasExternalAccess || !isBeyond(server)),
        isLocal,
        ...(by !== undefined && { by }),
        ...(withheld.length > 0 && { withheld }),
        ...(missing.length > 0 && { missing }),
      };
    })
    .toSorted((a, b) => b.labelCount - a.labelCount);
}

/** It is queried from where the container's own packets do not come. */
function isBeyond({ from }: Server): boolean {
  return from === "host" || from === "node";
}

interface MergedRoute {
  readonly servers: readonly NamedServer[];
  readonly isLocal: boolean;
  readonly by: string | undefined;
}

interface SelectedRoute {
  readonly servers: readonly (Server | "host")[];
  readonly isLocal: boolean;
  readonly by: string | undefined;
  readonly missing: readonly MissingServer[];
}

/**
 * The route of each domain; `last` is that of all names which no layer mentions. A container never uses a route that names
 * itself: for these names it has the next one, and in the end `last`, so that no name goes round between such servers.
 */
export function selectRoutes(
  layers: readonly RouteLayer[],
  { find, fallsBack }: ContainerRules,
  last: SelectedRoute,
): Map<string, SelectedRoute> {
  const byDomain = new Map<string, SelectedRoute>();
  const passedOver = new Map<string, PassedOver>();
  for (const layer of layers) {
    for (const [domain, merged] of mergeLayer(layer)) {
      if (byDomain.has(domain)) continue;
      const { route, isOwn, fails } = located(merged, domain, find);
      const isUsed = !isOwn && (route.servers.length > 0 || merged.servers.length === 0 || (fails && !fallsBack));
      const before = passedOver.get(domain);
      if (isUsed) byDomain.set(domain, route);
      else
        passedOver.set(domain, {
          isOwn: isOwn || before?.isOwn === true,
          missing: [...(before?.missing ?? []), ...(isOwn ? [] : route.missing)],
        });
    }
  }
  if (!byDomain.has("")) byDomain.set("", last);
  for (const [domain, { isOwn, missing }] of passedOver) {
    const isEnd = isOwn && !byDomain.has(domain);
    if (!isEnd && missing.length === 0) continue;
    const route = isEnd ? last : (byDomain.get(longestMatch(byDomain, domain)) ?? last);
    const others = route.missing.filter(({ server }) => missing.every((each) => each.server !== server));
    byDomain.set(domain, { ...route, missing: [...missing, ...others] });
  }
  return byDomain;
}

/** What was left out for a domain, in favour of the next route. */
interface PassedOver {
  /** Such a route names the container itself. */
  readonly isOwn: boolean;
  readonly missing: readonly MissingServer[];
}

/** The longest of the domains that a domain is at or below; "" if it is below none. */
export function longestMatch(domains: { readonly has: (domain: string) => boolean }, domain: string): string {
  for (let rest = domain; rest !== ""; rest = rest.slice(rest.indexOf(".") + 1)) {
    if (domains.has(rest)) return rest;
    if (!rest.includes(".")) return "";
  }
  return "";
}

/** `fails`: a container of it cannot be queried, and no other route is to take its place. */
function located(
  { servers: named, isLocal, by }: MergedRoute,
  domain: string,
  find: FindContainer,
): { readonly route: SelectedRoute; readonly isOwn: boolean; readonly fails: boolean } {
  const servers: (Server | "host")[] = [];
  const missing: MissingServer[] = [];
  let [isOwn, fails] = [false, false];
  for (const server of named) {
    const found = isContainerServer(server) ? find(server, domain) : server;
    if (found === "itself") isOwn = true;
    else if (typeof found === "object" && "reason" in found) {
      missing.push({ server: namedServerText(server), reason: found.reason });
      fails ||= found.isPassedOver !== true;
    } else if (found !== "later") servers.push(found);
  }
  return { route: { servers, isLocal, by, missing }, isOwn, fails };
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
