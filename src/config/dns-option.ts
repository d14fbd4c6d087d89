/**
 * DNS options as docker's `--dns-opt` takes them, as far as a server can follow them. Most options of a resolv.conf are
 * orders to the library in the container, which reads them in its own file; dns11 neither writes nor reads that.
 */
export interface DnsOption {
  readonly text: string;
  readonly kind: "ndots" | "rotate" | "use-vc" | "timeout";
  /** What stands behind the colon. */
  readonly number: number | undefined;
}

/** What an option leads to. */
const DNS_OPTION_FORMS = ["ndots:N", "rotate", "use-vc", "timeout:N"] as const;

/** What resolv.conf knows beside (resolv.conf(5), glibc and musl). */
const LIBRARY_OPTIONS = new Set([
  "attempts",
  "debug",
  "edns0",
  "inet6",
  "ip6-bytestring",
  "ip6-dotint",
  "no-aaaa",
  "no-check-names",
  "no-ip6-dotint",
  "no-reload",
  "no-tld-query",
  "single-request",
  "single-request-reopen",
  "trust-ad",
]);

const NDOTS_MAX = 15;
const TIMEOUT_SECONDS_MAX = 30;

/** Search lists are never ours. */
export const NO_SEARCH =
  "search lists are applied by the library in the container, from its own resolv.conf, which dns11 never writes: " +
  "give them to the container (docker run --dns-search) or to the engine (dockerd --dns-search)";

/** Reads one; throws an Error that says what is wrong with the text. */
export function parseDnsOption(text: string): DnsOption {
  const [name = "", number] = text.split(/:(.*)/s, 2);
  if (name === "rotate" || name === "use-vc") {
    if (number !== undefined) throw new Error(`"${text}" takes no number: it is "${name}"`);
    return { text, kind: name, number: undefined };
  }
  if (name === "ndots") return { text, kind: name, number: readNumber(text, number, 0, NDOTS_MAX) };
  if (name === "timeout") return { text, kind: name, number: readNumber(text, number, 1, TIMEOUT_SECONDS_MAX) };
  throw new Error(
    LIBRARY_OPTIONS.has(name)
      ? `"${text}" is for the library in the container, which reads it in its own resolv.conf: ` +
          "give it to the container (docker run --dns-opt)"
      : `"${text}" is no option that dns11 knows: ${DNS_OPTION_FORMS.join(", ")}`,
  );
}

function readNumber(text: string, number: string | undefined, least: number, most: number): number {
  const value = /^\d{1,4}$/.test(number ?? "") ? Number(number) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`"${text}" lacks a number from ${least} to ${most}: ${text.split(":", 1)[0] ?? ""}:N`);
}
