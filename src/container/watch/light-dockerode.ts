/**
 * LightDockerode: dockerode without dependencies that dns11 never calls, such as an ssh client, a gRPC client and tar-fs. They
 * are most of what it loads (200 of 226 files, 8 MB, 100 ms of CPU time), and code that a root process should not load.
 */
import { createRequire } from "node:module";

import type Dockerode from "dockerode";

type Require = ReturnType<typeof createRequire>;

const ours = createRequire(import.meta.url);
const package_ = createRequire(ours.resolve("dockerode"));
const modem = createRequire(package_.resolve("docker-modem"));

/** The modules to stub, with the module that requires them. */
const UNUSED: readonly (readonly [Require, readonly string[]])[] = [
  [package_, ["@balena/dockerignore", "@grpc/grpc-js", "@grpc/proto-loader", "tar-fs", "uuid"]],
  [modem, ["ssh2"]],
];

for (const [from, names] of UNUSED) {
  for (const name of names) replaceModule(from.resolve(name), {});
}
// A copy of Node's streams for older versions.
replaceModule(modem.resolve("readable-stream"), ours("node:stream"));

export const Docker = ours("dockerode") as typeof Dockerode;

/** Makes `require` return these exports for this file. */
function replaceModule(path: string, exports: unknown): void {
  const Module = ours("node:module") as new (id: string) => NodeJS.Module;
  const replacement = new Module(path);
  replacement.exports = exports;
  replacement.loaded = true;
  ours.cache[path] = replacement;
}
