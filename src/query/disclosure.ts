import type { Server } from "../base/model/view.ts";

/** What servers are told of the client that asks. A client without one costs a look at an empty field for each list of servers. */
export interface Disclosure {
  /** An EDNS option; empty if the server is to be told and nothing is known. Undefined: it gets what every server gets. */
  optionFor(server: Server): Uint8Array | undefined;
}
