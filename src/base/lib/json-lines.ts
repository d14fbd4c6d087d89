/**
 * JsonLines: a stream of JSON messages, one a line, as they arrive in pieces.
 */
import { ReplyBytes } from "./reply-bytes.ts";

const LINE_END = 0x0a;

export class JsonLines {
  readonly #onMessage: (message: unknown) => void;
  readonly #line: ReplyBytes;

  /** `bytesMax`: of one line. */
  constructor(bytesMax: number, onMessage: (message: unknown) => void) {
    this.#line = new ReplyBytes(bytesMax);
    this.#onMessage = onMessage;
  }

  /** Returns what is wrong with the stream; it cannot continue then. */
  push(chunk: Buffer): "too long" | "no JSON" | undefined {
    let rest = chunk;
    for (let at = rest.indexOf(LINE_END); at !== -1; at = rest.indexOf(LINE_END)) {
      if (!this.#line.push(rest.subarray(0, at))) return "too long";
      rest = rest.subarray(at + 1);
      if (!this.#parse(this.#line.take())) return "no JSON";
    }
    return this.#line.push(rest) ? undefined : "too long";
  }

  #parse(line: string): boolean {
    if (line === "") return true;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return false;
    }
    this.#onMessage(message);
    return true;
  }
}
