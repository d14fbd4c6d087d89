/**
 * HostFact: the host as one more container, so that status, explain and lookup can name it.
 */
import { outsiderFact } from "../facts/outsider.ts";

export const HOST_ID = "host";

export const HOST_FACT = outsiderFact({ id: HOST_ID, networkMode: "host", endpoints: [] });
