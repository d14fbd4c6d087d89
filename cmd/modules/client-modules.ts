/** ClientModules: all that commands load to query a running dns11, as one module, for the reason in host-modules.ts. */
export { ControlClient } from "../../src/api/control-client.ts";
export { locateControl, locateProcess } from "../../src/api/locate.ts";
