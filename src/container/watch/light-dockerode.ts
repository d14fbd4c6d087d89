/**
 * LightDockerode: the part of dockerode that dns11 calls, its HTTP client (the modem), without an ssh client. The rest of
 * dockerode are classes for what the engine manages, with a gRPC client and tar-fs: 216 of the 226 files that it loads,
 * 9 MB, 110 ms of CPU time, and code that a root process should not load.
 */
import { createRequire } from "node:module";

export interface Modem {
  dial(request: ModemRequest, done: (error: unknown, body: unknown) => void): void;
}

export interface ModemRequest {
  /** Ends with a question mark where `options` are its parameters. */
  readonly path: string;
  readonly method: "GET";
  readonly abortSignal: AbortSignal;
  /** Every other status is an error. */
  readonly statusCodes: Readonly<Record<number, boolean>>;
  readonly options?: object;
  /** The body is the reply's stream, not its JSON. */
  readonly isStream?: boolean;
}

const ours = createRequire(import.meta.url);
const dockerode = createRequire(ours.resolve("dockerode"));
const modem = createRequire(dockerode.resolve("docker-modem"));

replaceModule(modem.resolve("ssh2"), {});
// A copy of Node's streams for older versions.
replaceModule(modem.resolve("readable-stream"), ours("node:stream"));

const ModemClass = dockerode("docker-modem") as new (options: { readonly socketPath: string }) => Modem;

export function openModem(socketPath: string): Modem {
  return new ModemClass({ socketPath });
}

/** Makes `require` return these exports for this file. */
function replaceModule(path: string, exports: unknown): void {
  const Module = ours("node:module") as new (id: string) => NodeJS.Module;
  const replacement = new Module(path);
  replacement.exports = exports;
  replacement.loaded = true;
  ours.cache[path] = replacement;
}
