/**
 * AddressOwners: the containers that have the addresses of an answer, because an address alone tells nobody where a name
 * led.
 */
import type { AddressOwner } from "../../api/names.ts";
import type { KnownContainer, KnownContainers } from "../causes/known-container.ts";
import { composeServiceOf } from "../../container/facts/compose.ts";
import { namedContainer } from "./find-container.ts";
import type { ApiRequest } from "../server/http.ts";
import type { ControlPorts } from "./ports.ts";

/** The addresses among the records of an answer. */
export function addressesIn(answers: readonly { readonly type: string; readonly data: string }[]): string[] {
  return answers.filter(({ type }) => type === "A" || type === "AAAA").map(({ data }) => data);
}

/** Finds who has an address that no container of this engine has. */
type ElsewhereOf = (address: string) => AddressOwner | undefined;

interface Owners {
  readonly owners: readonly AddressOwner[];
  /** Those that are containers of this engine. */
  readonly here: readonly AddressOwner[];
}

/**
 * Networks may have the same subnet: those of the client come first, and before containers of other networks what other
 * machines have on those. An address without a container has no owner.
 */
export function ownersOf(
  addresses: readonly string[],
  known: KnownContainers,
  client: KnownContainer | undefined,
  elsewhereOf: ElsewhereOf = () => undefined,
): Owners {
  const own = new Set(client?.endpoints.map(({ networkName }) => networkName));
  const here: AddressOwner[] = [];
  const owners = addresses.flatMap((address) => {
    const places = known.withAddress(address);
    const near = places.find(({ endpoint }) => own.has(endpoint.networkName));
    const elsewhere = near === undefined ? elsewhereOf(address) : undefined;
    if (elsewhere !== undefined) return [elsewhere];
    const place = near ?? places[0];
    if (place === undefined) return [];
    const { container, endpoint } = place;
    const owner = {
      address,
      container: container.name,
      network: endpoint.networkName,
      project: container.compose?.project ?? null,
      service: container.compose?.service ?? null,
    };
    here.push(owner);
    return [owner];
  });
  return { owners, here };
}

export const COMPOSE_KEYS: readonly string[] = ["project", "service"];

type Place = { readonly project: string | null; readonly service: string | null };

/**
 * The parameters `project` and `service` of a request: containers are wanted by their labels, also ones that
 * start later, and ones that have ended if the engine still has them.
 */
export interface ComposeFilter {
  readonly acceptsPlace: (place: Place) => boolean;
  readonly acceptsId: (containerId: string) => boolean;
}

/** undefined without these parameters. */
export async function composeFilterOf(
  query: ApiRequest["query"],
  { containers }: Pick<ControlPorts, "containers">,
): Promise<ComposeFilter | undefined> {
  const [project, service] = [query.get("project") ?? "", query.get("service") ?? ""];
  if (project === "" && service === "") return undefined;
  const acceptsPlace = (place: Place): boolean =>
    (project === "" || place.project === project) && (service === "" || place.service === service);
  const ended = new Set(
    (await containers.stopped())
      .filter((each) => acceptsPlace({ project: null, service: null, ...composeServiceOf(each) }))
      .map(({ id }) => id),
  );
  const acceptsId = (id: string): boolean => {
    const fact = containers.facts.get(id);
    return fact === undefined ? ended.has(id) : acceptsPlace(namedContainer(fact));
  };
  return { acceptsPlace, acceptsId };
}
