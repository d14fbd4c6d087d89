import { path, quoting } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

const PATH = path("/run/dnstap.sock");
/** Of the address of a Unix socket. */
const PATH_BYTES_MAX = 107;

const settings = {
  dnstap: one(quoting(readSocket), undefined, "socket of a program that reads the messages of containers and servers"),
};

export const DNSTAP = {
  settings,
  conflicts: (all: Settings): readonly (readonly ["dnstap", string])[] =>
    socketPath(all) !== undefined && all.queries.names === "off"
      ? [["dnstap", "has no effect with queries.names: off. Use queries.names: hidden, or remove this setting"]]
      : [],
  load: async () => await import("./dnstap.ts"),
} as const;

function readSocket(value: unknown, quote: (value: unknown) => string): string {
  const text = PATH.read(value);
  if (Buffer.byteLength(text) <= PATH_BYTES_MAX) return text;
  throw new Error(`invalid path ${quote(value)}: use one of at most ${PATH_BYTES_MAX} bytes, such as /run/dnstap.sock`);
}

/** Undefined: it is off. */
export function socketPath(all: Pick<Settings, "features">): string | undefined {
  return featureValues(settings, all).dnstap;
}
