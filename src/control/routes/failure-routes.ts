/**
 * FailureRoutes: `GET /v1/failures` with `container`, `project`, `service`, and `follow=true` (each failure again whenever it happens again).
 */
import type { FailuresReport } from "../../api/failures.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import type { FailureTables } from "../../query/failures/failure-tables.ts";
import { followedContainer } from "../situation/followed-container.ts";
import { COMPOSE_KEYS, type ComposeFilter } from "../situation/compose-filter.ts";
import type { FailureReader } from "../failures/failure-reader.ts";
import type { ApiRequest, Routes } from "../server/http.ts";
import { isTrue, refuseUnknown } from "../server/parameters.ts";

interface FailureRouteParts {
  readonly failures: FailureTables;
  readonly reader: FailureReader;
  /** The ID of a container by its name or the beginning of its ID; throws a Fault if no served container matches. */
  readonly find: (nameOrId: string) => string;
  /** That of a container that the engine has and that does not run. */
  readonly findStopped: (nameOrId: string) => Promise<string | undefined>;
  readonly nameOf: (containerId: string) => string | undefined;
  readonly composeFilterOf: (query: ApiRequest["query"]) => Promise<ComposeFilter | undefined>;
  /** What features say of these containers. */
  readonly ofFeatures: (isMeant: (containerId: string) => boolean) => Partial<FailuresReport>;
}

const KEYS: readonly string[] = ["container", ...COMPOSE_KEYS, "follow"];

export function failureRoutes(parts: FailureRouteParts): Routes {
  const { failures, reader, nameOf, composeFilterOf, ofFeatures } = parts;
  return {
    "GET /v1/failures": async ({ query, signal }: ApiRequest) => {
      refuseUnknown(query, KEYS);
      if (!failures.isEnabled) {
        throw new Fault("QUERIES_OFF", "Failures are not recorded, because queries.names is off", {
          remedy: "Set queries.names to full or hidden.",
        });
      }
      const container = query.get("container");
      const id = container === null || container === "" ? undefined : await idOf(container, parts);
      const compose = await composeFilterOf(query);
      if (isTrue(query, "follow")) {
        const isFollowed = id === undefined ? () => true : followedContainer(container ?? "", id, nameOf);
        return reader.follow(signal, (each) => isFollowed(each) && compose?.acceptsId(each) !== false);
      }
      const filter = { containerId: id, ...compose };
      const more = ofFeatures((each) => (id === undefined || each === id) && filter.acceptsId?.(each) !== false);
      return { ...(await reader.read(filter)), ...more };
    },
  };
}

/** A running container takes precedence over one that has ended and had the same name. */
async function idOf(
  nameOrId: string,
  { failures, find, findStopped }: Pick<FailureRouteParts, "failures" | "find" | "findStopped">,
): Promise<string> {
  try {
    return find(nameOrId);
  } catch (error) {
    if (codeOf(error) !== "NO_SUCH_CONTAINER") throw error;
    const ended = (await findStopped(nameOrId)) ?? endedContainer(failures, nameOrId);
    if (ended === undefined) throw error;
    return ended;
  }
}

/** The ID of a container that has ended, but whose failures are still recorded. */
function endedContainer(failures: FailureTables, nameOrId: string): string | undefined {
  for (const { containerId, containerName } of failures.tables()) {
    if (containerName !== undefined && (containerName === nameOrId || containerId.startsWith(nameOrId)))
      return containerId;
  }
  return undefined;
}
