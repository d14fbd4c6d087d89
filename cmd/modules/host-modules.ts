/**
 * HostModules: all that commands load to serve or clean up on this machine, as one module. Each module that is loaded on demand by
 * itself cuts the bundle into more chunks: loaded one by one, `dns11 run` was 79 chunks with 540 imports, and linking
 * those took a fifth of a start.
 */
export { createLog } from "../../src/base/log/log.ts";
export { cleanup } from "../../src/run/cleanup.ts";
export { findEngine, preview } from "../../src/run/engine/engine-target.ts";
export { Standalone } from "../../src/run/engine/standalone.ts";
export { findNode, serveOnce, undoNodeSetup } from "../../src/run/node/node-side.ts";
export { loadFeatures } from "../../src/features/load.ts";
export { Service } from "../../src/run/service.ts";
