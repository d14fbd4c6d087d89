/**
 * LightDockerode: the engine's package without what it loads beside and dns11 never calls: a client of ssh, one of gRPC and
 * the packing of folders. They are more than half of what it loads (160 of 226 files, 8 MB, 80 ms of processor time), and
 * code that a process of root's is better without.
 */
import { createRequire } from "node:module";

import type Dockerode from "dockerode";

type Require = ReturnType<typeof createRequire>;

const ours = createRequire(import.meta.url);
const package_ = createRequire(ours.resolve("dockerode"));

/** Whoever stands here asks for what must not be loaded. */
const UNUSED: readonly (readonly [Require, readonly string[]])[] = [
  [package_, ["@grpc/grpc-js", "@grpc/proto-loader", "tar-fs"]],
  [createRequire(package_.resolve("docker-modem")), ["ssh2"]],
];

for (const [from, names] of UNUSED) {
  for (const name of names) stubModule(from.resolve(name));
}

export const Docker = ours("dockerode") as typeof Dockerode;

/** Has whoever asks for this file get an empty module. */
function stubModule(path: string): void {
  const Module = ours("node:module") as new (id: string) => NodeJS.Module;
  const empty = new Module(path);
  empty.loaded = true;
  ours.cache[path] = empty;
}
