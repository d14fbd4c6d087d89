/**
 * UiModules: all that `dns11 ui` loads beside the client, as one module and so as few chunks of the bundle.
 */
export { readPageFiles } from "../../src/ui/server/page-files.ts";
export { UiServer } from "../../src/ui/server/ui-server.ts";
export { readSnapshot } from "../../src/ui/snapshot/read-snapshot.ts";
export { redactSnapshot } from "../../src/ui/snapshot/redact-snapshot.ts";
export { SnapshotFolder } from "../../src/ui/snapshot/snapshot-folder.ts";
