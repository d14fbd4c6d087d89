/**
 * EngineId: fetches the ID of an engine, by which its dns11 is found.
 */
import { LIMITS } from "../base/limits.ts";
import { engineFault } from "../base/model/engine-fault.ts";
import { openUnix, textOf } from "./unix-http.ts";

/** Throws a Fault with the path of the socket. */
export async function engineId(socketPath: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(LIMITS.listMs);
    const answer = await openUnix(socketPath, "/info", { timeoutMs: LIMITS.listMs, signal });
    const text = await textOf(answer);
    if (answer.statusCode !== 200) throw new Error(`it responded with status ${answer.statusCode}`);
    const { ID: id } = JSON.parse(text) as { readonly ID?: string };
    return id ?? "";
  } catch (error) {
    throw engineFault(error, socketPath);
  }
}
