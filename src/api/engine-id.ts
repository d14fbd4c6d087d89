/**
 * EngineId: what an engine calls itself, asked by one plain request. The engine's package takes 30 ms of processor time to
 * load, and a command that looks into a running dns11 needs nothing else of the engine.
 */
import { request } from "node:http";

import { LIMITS } from "../base/limits.ts";
import { engineFault } from "../base/model/engine-fault.ts";

/** Throws a Fault that names the socket. */
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
    const asked = request({ socketPath, path, headers: { host: "docker" }, signal, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => {
        if (answer.statusCode === 200) resolve(Buffer.concat(chunks).toString("utf8"));
        else reject(new Error(`it answered ${answer.statusCode}`));
      });
      answer.on("error", reject);
    });
    asked.on("error", reject);
    asked.end();
  });
}
