/**
 * EngineFault: an error at the engine's socket, with the path of that socket and a remedy.
 */
import { Fault, codeOf } from "../lib/fault.ts";

export function engineFault(error: unknown, socketPath: string): Fault {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  if (status === 404) {
    return new Fault("ENGINE_NOT_FOUND", "Not found by the engine", {
      cause: error,
      remedy: "The container, image or network was removed in the meantime. Run the command again.",
    });
  }
  switch (codeOf(error)) {
    case "ENOENT":
      return new Fault("ENGINE_NO_SOCKET", `No engine socket at "${socketPath}"`, {
        cause: error,
        remedy: "Check that Docker is installed and running, or set its socket with -H unix://PATH or DOCKER_HOST.",
      });
    case "EACCES":
    case "EPERM":
      return new Fault("ENGINE_PERMISSION", `Permission denied at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Run this command as root, for example with sudo.",
      });
    case "ECONNREFUSED":
      return new Fault("ENGINE_AWAY", `Connection refused at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Check that dockerd is running: systemctl status docker.",
      });
    default:
      return new Fault("ENGINE_AWAY", `The engine at "${socketPath}" did not answer`, {
        cause: error,
        remedy: "Check that dockerd is running: systemctl status docker.",
      });
  }
}
