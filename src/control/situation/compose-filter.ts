/**
 * ComposeFilter: the parameters `project` and `service` of a request: containers are wanted by their labels, also ones that
 * start later, and ones that have ended if the engine still has them.
 */
import { composePlaceOf } from "../../container/facts/compose.ts";
import { namedContainer } from "../containers/find-container.ts";
import type { ApiRequest } from "../server/http.ts";
import type { ControlPorts } from "./ports.ts";

export const COMPOSE_KEYS: readonly string[] = ["project", "service"];

type Place = { readonly project: string | null; readonly service: string | null };

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
      .filter((each) => acceptsPlace({ project: null, service: null, ...composePlaceOf(each) }))
      .map(({ id }) => id),
  );
  const acceptsId = (id: string): boolean => {
    const fact = containers.facts.get(id);
    return fact === undefined ? ended.has(id) : acceptsPlace(namedContainer(fact));
  };
  return { acceptsPlace, acceptsId };
}
