/**
 * The name under which a namespace asks itself whether its queries arrive here. RFC 6761 keeps .invalid from leaving, so
 * a probe that goes astray tells nobody anything.
 */
const SUFFIX = "dns11.invalid";

export function probeName(nonce: string): string {
  return `${nonce}.${SUFFIX}`;
}
