/**
 * LightDockerode: dockerode without dependencies that dns11 never calls: an ssh client, a gRPC client and tar-fs. They
 * are more than half of what it loads (160 of 226 files, 8 MB, 80 ms of CPU time), and code that a root process should
 * not load.
 */
import { createRequire } from "node:module";

import type Dockerode from "dockerode";

type Require = ReturnType<typeof createRequire>;

const ours = createRequire(import.meta.url);
const package_ = createRequire(ours.resolve("dockerode"));

/** The modules to stub, with the module that requires them. */
const UNUSED: readonly (readonly [Require, readonly string[]])[] = [
  [package_, ["@grpc/grpc-js", "@grpc/proto-loader", "tar-fs"]],
  [createRequire(package_.resolve("docker-modem")), ["ssh2"]],
];

for (const [from, names] of UNUSED) {
  for (const name of names) stubModule(from.resolve(name));
}

export const Docker = ours("dockerode") as typeof Dockerode;

/** Makes `require` return an empty module for this file. */
function stubModule(path: string): void {
  const Module = ours("node:module") as new (id: string) => NodeJS.Module;
  const empty = new Module(path);
  empty.loaded = true;
  ours.cache[path] = empty;
}
