/**
 * LostAliases: a container of a Compose service that is on a network without the name of its service. Compose always gives it
 * one; `docker network connect` gives what it is told, so who has disconnected and connected it has taken the name away.
 */
import { bareName } from "../../base/dns/name.ts";
import type { Cause } from "../../api/causes.ts";
import type { KnownContainer } from "./known-container.ts";
import { type Situation, cause } from "./situation.ts";
import { definitionOf, recreateCommand, recreated, reconnectCommand, replicasOf, serviceChange } from "./fixes.ts";

/** One name gets so many causes. */
const CAUSES_MAX = 5;

/** The name is that of a service, which its containers on the client's networks have lost. */
export function lostAliasCauses(situation: Situation): Cause[] {
  const { known, name, owner } = situation;
  const own = new Set(owner.endpoints.map(({ networkName }) => networkName));
  const bare = bareName(name);
  const [label = ""] = bare.split(".", 1);
  return known
    .ofService(label)
    .filter(({ compose }) => compose?.project === owner.compose?.project)
    .flatMap((container) =>
      networksWithout(container)
        .filter((network) => own.has(network) && (bare === label || bare === `${label}.${network.toLowerCase()}`))
        .map((network) => lostAliasCause(container, network, situation)),
    )
    .slice(0, CAUSES_MAX);
}

export function lostAliasCause(
  container: KnownContainer,
  network: string,
  known: Pick<Situation, "known" | "former">,
): Cause {
  const service = container.compose?.service ?? "";
  const others = othersWithAlias(container, network, known.known);
  const rest = others.length === 0 ? "" : `; there it is ${others.map(({ name }) => name).join(", ")} alone`;
  const sentence =
    `container ${container.name} is on network ${network} without the alias "${service}", which Compose has given it: ` +
    `it was disconnected, and connected again without${rest}`;
  return cause("lost-alias", sentence, {
    fix: reconnectCommand(container, network, known),
    ...recreated(container),
    isBreaking: others.length === 0,
  });
}

/** The replicas that the name of the service still leads to. */
export function othersWithAlias(
  container: KnownContainer,
  network: string,
  known: Situation["known"],
): KnownContainer[] {
  const service = container.compose?.service.toLowerCase() ?? "";
  return replicasOf(container, known).filter(({ endpoints }) =>
    endpoints.some((each) => each.networkName === network && each.names.includes(service)),
  );
}

/**
 * The networks of its project that a running container is on without the name of its service. On a network of others it may have
 * been connected by hand, and be meant to have none.
 */
export function networksWithout({ compose, ended, isStarting, endpoints }: KnownContainer): string[] {
  if (compose === undefined || compose.isOneOff || ended !== undefined || isStarting === true) return [];
  const service = compose.service.toLowerCase();
  return endpoints
    .filter(({ names, networkName }) => networkName.startsWith(`${compose.project}_`) && !names.includes(service))
    .map(({ networkName }) => networkName);
}

const KEY = "extra_hosts";

/**
 * Entries of /etc/hosts that a container was given (--add-host, extra_hosts). Programs read them before they query, so a stale
 * one leads past the container that has the name.
 * `when` says when programs read the entry.
 */
export function givenHostCause(
  client: KnownContainer,
  name: string,
  addresses: readonly string[],
  when = "they read it before they query",
): Cause {
  const sentence = `programs in ${client.name} get ${addresses.join(", ")}: /etc/hosts has "${name}" (--add-host, extra_hosts), and ${when}`;
  const advice = `remove "${name}" from it, if it is not meant`;
  return cause("hosts-file", sentence, { advice, lastingFix: lastingChange(client, name) });
}

function lastingChange(client: KnownContainer, name: string): Cause["lastingFix"] {
  const text = definitionOf(client);
  const place = text?.extraHosts.get(bareName(name));
  if (text !== undefined && place === undefined)
    return serviceChange(client, KEY, `"${name}" is no longer there: create it again`, recreateCommand(client));
  const change = serviceChange(client, KEY, `remove "${name}", if it is not meant`);
  return change === null || place === undefined
    ? change
    : { ...change, file: place.file, service: place.service, key: `services.${place.service}.${KEY}` };
}
