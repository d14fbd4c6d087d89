/**
 * Gate: who may ask. The listener is on loopback, where every program of the machine and every page in a browser can connect. So a
 * request needs the token, which only the printed URL has; its Host must be that of the URL, against names that an attacker points to
 * 127.0.0.1 (DNS rebinding); and a page of another origin is refused. The host is new with each start: a program that listened on the
 * port before cannot have left a service worker for it in the browser, which would see the page and its token.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

const TOKEN_BYTES = 32;
const HOST_BYTES = 16;
export const TOKEN_HEADER = "x-dns11-token";
/** What a browser says about a request that the page, or the user, made. */
const OWN_SITES = new Set([undefined, "same-origin", "none"]);

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly error: string;
  readonly remedy: string;
}

export class Gate {
  readonly token = randomBytes(TOKEN_BYTES).toString("hex");
  /** It has its port. Browsers resolve every name below `localhost` to the machine itself. */
  readonly host: string;
  readonly #digest = digestOf(this.token);

  constructor(port: number) {
    this.host = `d11-${randomBytes(HOST_BYTES).toString("hex")}.localhost:${port}`;
  }

  /** Why a request is refused; undefined if it may be answered. The files of the page need no token. */
  refusal(headers: IncomingHttpHeaders, needsToken: boolean): Refusal | undefined {
    const { host = "", origin, "sec-fetch-site": site } = headers;
    if (host !== this.host) {
      const remedy = "Open the URL that dns11 ui printed.";
      return { status: 403, code: "UI_HOST", error: "The request is for another host", remedy };
    }
    const isForeign = (origin !== undefined && origin !== `http://${host}`) || !OWN_SITES.has(site?.toString());
    if (isForeign) {
      const remedy = "Open the page itself: other pages may not read it.";
      return { status: 403, code: "UI_ORIGIN", error: "The request is from another page", remedy };
    }
    if (!needsToken || this.#isToken(headers[TOKEN_HEADER])) return undefined;
    const remedy = "Open the URL that dns11 ui printed: each start has a new one.";
    return { status: 401, code: "UI_TOKEN", error: "The token is missing or wrong", remedy };
  }

  /** Digests have the same length, and their comparison takes the same time, whatever was sent. */
  #isToken(sent: string | readonly string[] | undefined): boolean {
    return typeof sent === "string" && timingSafeEqual(digestOf(sent), this.#digest);
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
