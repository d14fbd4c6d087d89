/**
 * EngineFault: what went wrong at the engine's socket, in terms of that socket, and what to do about it.
 */
import { Fault, codeOf, reasonOf } from "../lib/fault.ts";

export function engineFault(error: unknown, socketPath: string): Fault {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  if (status === 404) return new Fault("ENGINE_NOT_FOUND", "The engine does not know it", { cause: error });
  switch (codeOf(error)) {
    case "ENOENT":
      return new Fault("ENGINE_NO_SOCKET", `There is no engine socket at "${socketPath}"`, {
        cause: error,
        remedy: "Is Docker installed and running? Another socket is named with -H unix://PATH or DOCKER_HOST.",
      });
    case "EACCES":
    case "EPERM":
      return new Fault("ENGINE_PERMISSION", `Permission denied at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Run dns11 as root.",
      });
    case "ECONNREFUSED":
      return new Fault("ENGINE_AWAY", `Nobody answers at the engine socket "${socketPath}"`, { cause: error });
    default:
      return new Fault("ENGINE_AWAY", `The engine at "${socketPath}" did not answer: ${reasonOf(error)}`, {
        cause: error,
      });
  }
}
