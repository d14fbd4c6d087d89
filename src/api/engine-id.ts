/**
 * EngineId: fetches the ID of an engine with one plain request. Loading the Docker client package takes 30 ms of CPU time,
 * and commands need nothing else from the engine.
 */
import { request } from "node:http";

import { LIMITS } from "../base/limits.ts";
import { engineFault } from "../base/model/engine-fault.ts";

/** Throws a Fault with the path of the socket. */
export async function engineId(socketPath: string): Promise<string> {
  try {
    const { ID: id } = JSON.parse(await get(socketPath, "/info")) as { readonly ID?: string };
    return id ?? "";
  } catch (error) {
    throw engineFault(error, socketPath);
  }
}

async function get(socketPath: string, path: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(LIMITS.listMs);
    const outgoing = request({ socketPath, path, headers: { host: "docker" }, signal, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => {
        if (answer.statusCode === 200) resolve(Buffer.concat(chunks).toString("utf8"));
        else reject(new Error(`it responded with status ${answer.statusCode}`));
      });
      answer.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}
