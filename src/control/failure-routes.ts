/**
 * FailureRoutes: `GET /v1/failures` with `container`, and `follow=true` (each failure again whenever it happens again).
 */
import { Fault } from "../base/lib/fault.ts";
import type { FailureTables } from "../query/failures/failure-tables.ts";
import type { FailureReader } from "./failure-reader.ts";
import type { ApiRequest, Routes } from "./http.ts";
import { isTrue } from "./query-routes.ts";

interface FailureRouteParts {
  readonly failures: FailureTables;
  readonly reader: FailureReader;
  /** The ID of a container by its name or the beginning of its ID; throws a Fault if no served container matches. */
  readonly find: (nameOrId: string) => string;
}

const KEYS: readonly string[] = ["container", "follow"];

export function failureRoutes({ failures, reader, find }: FailureRouteParts): Routes {
  return {
    "GET /v1/failures": ({ query, signal }: ApiRequest) => {
      const unknown = [...query.keys()].find((key) => !KEYS.includes(key));
      if (unknown !== undefined) {
        throw new Fault("BAD_QUERY", `Unknown parameter "${unknown}": use one of ${KEYS.join(", ")}`);
      }
      if (!failures.isEnabled) {
        throw new Fault("QUERIES_OFF", "Failures are not recorded, because queries.names is off");
      }
      const container = query.get("container");
      const id = container === null || container === "" ? undefined : idOf(container, failures, find);
      return isTrue(query, "follow") ? reader.follow(signal, id) : reader.read(id);
    },
  };
}

/** A running container takes precedence over one that has ended and had the same name. */
function idOf(nameOrId: string, failures: FailureTables, find: (nameOrId: string) => string): string {
  try {
    return find(nameOrId);
  } catch (error) {
    const ended = endedContainer(failures, nameOrId);
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
