/**
 * Api: requests to `dns11 ui`, which passes them on to the control socket. Every text that arrives is made printable here, once: what is
 * drawn cannot contain control characters or reverse what is read, whoever named it.
 */
import { printable, printableText } from "../../../base/lib/text.ts";

/** Texts of several lines. */
const TEXTS: ReadonlySet<string> = new Set(["detail", "remedy"]);
/** JSON writes control characters with a backslash. */
const MAY_HAVE_CONTROLS = /[\\\p{Cc}\p{Bidi_Control}]/u;

export class ApiError extends Error {
  readonly code: string;
  readonly remedy: string | undefined;

  constructor(code: string, message: string, remedy?: string) {
    super(message);
    this.code = code;
    this.remedy = remedy;
  }
}

interface StreamOptions {
  readonly body?: object;
  /** Called before the first line, which may come much later. */
  readonly onOpen?: () => void;
}

export function parse(text: string): unknown {
  const json = text.trimEnd();
  // Most lines have nothing to escape: then there is no call for each of their values.
  if (!MAY_HAVE_CONTROLS.test(json)) return JSON.parse(json);
  return JSON.parse(json, (key, value: unknown) => {
    if (typeof value !== "string") return value;
    return TEXTS.has(key) ? printableText(value) : printable(value);
  });
}

export class Api {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  /** The body as text, so that the caller can see that nothing has changed. */
  async text(path: string, signal?: AbortSignal): Promise<string> {
    return await (await this.#open(path, {}, signal)).text();
  }

  async post<T>(path: string, body: object): Promise<T> {
    return parse(await (await this.#open(path, { method: "POST", body: JSON.stringify(body) })).text()) as T;
  }

  /** The values of a stream, until it ends, breaks or is aborted. */
  async *lines<T>(path: string, signal: AbortSignal, { body, onOpen }: StreamOptions = {}): AsyncGenerator<T, void> {
    const request = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await this.#open(path, request, signal);
    onOpen?.();
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (reader === undefined) return;
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield parse(line) as T;
    }
  }

  async #open(path: string, request: RequestInit, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "x-dns11-token": this.#token };
    if (request.body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { ...request, headers, cache: "no-store", ...(signal !== undefined && { signal }) });
    } catch (cause) {
      if (signal?.aborted === true) throw cause;
      throw new ApiError("UNREACHABLE", "The page has lost its connection to `dns11 ui`.");
    }
    if (response.ok) return response;
    const text = await response.text();
    throw errorOf(response.status, text);
  }
}

function errorOf(status: number, text: string): ApiError {
  try {
    const { error, code, remedy } = parse(text) as { error: string; code: string; remedy?: string };
    return new ApiError(code, error, remedy);
  } catch {
    return new ApiError("UNREACHABLE", `Unexpected response with status ${status}`);
  }
}
