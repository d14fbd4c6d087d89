/**
 * LimitedGet: a request to the engine whose reply may be long because of what other machines sent it. It is read up to a
 * limit; dockerode reads any reply to its end.
 */
import { request } from "node:http";

/** `notHere`: a status with which the engine says that it has no such thing; then undefined is returned. */
export interface LimitedGet {
  readonly socketPath: string;
  readonly path: string;
  readonly timeoutMs: number;
  readonly bytesMax: number;
  readonly notHere: readonly number[];
}

export async function limitedGet<T>({
  socketPath,
  path,
  timeoutMs,
  bytesMax,
  notHere,
}: LimitedGet): Promise<T | undefined> {
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const call = request({ socketPath, path, signal, headers: { host: "docker" } }, (response) => {
      const { statusCode = 0 } = response;
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= bytesMax) chunks.push(chunk);
        else response.destroy(new Error(`the reply to ${path} is over ${bytesMax} bytes`));
      });
      response.once("error", reject);
      response.once("end", () => {
        if (notHere.includes(statusCode)) return resolve(undefined);
        if (statusCode !== 200) return reject(new Error(`the engine answered ${path} with ${statusCode}`));
        try {
          resolve(JSON.parse(Buffer.concat(chunks).toString()) as T);
        } catch (error) {
          reject(error);
        }
      });
    });
    call.once("error", reject);
    call.end();
  });
}
