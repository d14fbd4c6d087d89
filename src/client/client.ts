/**
 * Client: a running dns11, asked through its control socket. What the commands use, and what the package offers to test
 * suites.
 */
import { type IncomingMessage, request } from "node:http";

import type { RepairAnswer, Status } from "../daemon/status.ts";
import { Fault, codeOf } from "../lib/fault.ts";

/** Of an answer that is one value; a stream takes as long as it lasts. */
const TIMEOUT_MS = 5_000;

export class Client {
  readonly #path: string;

  /** `path` is that of the control socket. */
  constructor(path: string) {
    this.#path = path;
  }

  async status(): Promise<Status> {
    return (await this.#ask("GET", "/v1/status")) as Status;
  }

  /** Puts a KIND node back as it was; returns which one that is. */
  async detachNode(node: string): Promise<{ readonly name: string }> {
    return (await this.#ask("POST", "/v1/kind/detach", { node })) as { readonly name: string };
  }

  /** Serves a node again. */
  async attachNode(node: string): Promise<{ readonly name: string }> {
    return (await this.#ask("POST", "/v1/kind/attach", { node })) as { readonly name: string };
  }

  /** Has a container, by its name or id, attached anew where it has to be. */
  async repair(container: string): Promise<RepairAnswer> {
    return (await this.#ask("POST", "/v1/repair", { container })) as RepairAnswer;
  }

  async #ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.#open(method, path, body, TIMEOUT_MS);
    const chunks: Buffer[] = [];
    for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
    const said: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (answer.statusCode === 200) return said;
    throw this.#refusal(answer, said);
  }

  async #open(method: string, path: string, body?: unknown, timeout?: number): Promise<IncomingMessage> {
    return await new Promise((resolve, reject) => {
      const options = { socketPath: this.#path, path, method, ...(timeout !== undefined && { timeout }) };
      const asked = request(options, resolve);
      asked.on("timeout", () => asked.destroy(new Error("no answer in time")));
      asked.on("error", (error) => reject(this.#fault(error)));
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  #refusal({ statusCode }: IncomingMessage, said: unknown): Fault {
    const { error, code } = said as { readonly error?: string; readonly code?: string };
    return new Fault(code ?? "CONTROL", error ?? `The dns11 at "${this.#path}" answered ${statusCode}`);
  }

  #fault(cause: Error): Fault {
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ECONNREFUSED") {
      return new Fault("NOT_RUNNING", `No dns11 is running for this engine (nobody at "${this.#path}")`, {
        remedy: "Start it with: dns11 run",
      });
    }
    const isDenied = code === "EACCES";
    return new Fault(isDenied ? "CONTROL_PERMISSION" : "CONTROL", `Cannot ask the dns11 at "${this.#path}"`, {
      cause,
      ...(isDenied && { remedy: "Root, and the group docker where it exists, may ask." }),
    });
  }
}
