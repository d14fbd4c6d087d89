/**
 * DNS options in the form of docker's `--dns-opt`, as far as a server can apply them. Most options of resolv.conf are for
 * the resolver library in the container, which reads its own file; dns11 does not write that file.
 */
export interface DnsOption {
  readonly text: string;
  readonly kind: "ndots" | "rotate" | "use-vc" | "timeout";
  /** The number after the colon. */
  readonly number: number | undefined;
}

const DNS_OPTION_FORMS = ["ndots:N", "rotate", "use-vc", "timeout:N"] as const;

/** The other options of resolv.conf (glibc and musl). */
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

export const NO_SEARCH =
  "search lists are applied by the resolver library in the container, which reads its own resolv.conf: " +
  "set them on the container (docker run --dns-search) or on the engine (dockerd --dns-search)";

/** Parses one option; throws an Error that describes the mistake. */
export function parseDnsOption(text: string): DnsOption {
  const [name = "", number] = text.split(/:(.*)/s, 2);
  if (name === "rotate" || name === "use-vc") {
    if (number !== undefined) throw new Error(`invalid option "${text}": use ${name}, which has no value`);
    return { text, kind: name, number: undefined };
  }
  if (name === "ndots") return { text, kind: name, number: readNumber(text, number, 0, NDOTS_MAX) };
  if (name === "timeout") return { text, kind: name, number: readNumber(text, number, 1, TIMEOUT_SECONDS_MAX) };
  throw new Error(
    LIBRARY_OPTIONS.has(name)
      ? `option "${text}" is not supported, because the resolver library in the container applies it: ` +
          "set it on the container (docker run --dns-opt)"
      : `unknown option "${text}": use one of ${DNS_OPTION_FORMS.join(", ")}`,
  );
}

function readNumber(text: string, number: string | undefined, min: number, max: number): number {
  const value = /^\d{1,4}$/.test(number ?? "") ? Number(number) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Error(`invalid option "${text}": use ${text.split(":", 1)[0] ?? ""}:N with N from ${min} to ${max}`);
}
