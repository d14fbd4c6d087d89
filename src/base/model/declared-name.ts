/**
 * DeclaredName: a name that the operator declares in the settings or in a records file, as it is read there: with data
 * in wire format, and with other names still as text.
 */

/** Who can resolve a declared name: everybody, or the containers of a network or a Compose project. */
export interface RecordScope {
  readonly kind: "everybody" | "network" | "project";
  /** The name of the network or the project; empty for everybody. */
  readonly name: string;
}

export const EVERYBODY: RecordScope = { kind: "everybody", name: "" };

export interface DeclaredRecord {
  readonly type: number;
  /** In wire format, with names uncompressed. */
  readonly data: Uint8Array;
  /** The record as it was written, such as `MX 10 mail.shop.test`. */
  readonly text: string;
}

export interface DeclaredName {
  /** In lower case, without a final dot; a wildcard begins with "*.". */
  readonly name: string;
  readonly scope: RecordScope;
  /** Where it is declared: file, line and column. */
  readonly where: string;
  /** Undefined for the TTL of container names. */
  readonly ttlSeconds: number | undefined;
  readonly records: readonly DeclaredRecord[];
  /** The name that its CNAME points to. */
  readonly alias: string | undefined;
  /** It has the addresses of these containers. */
  readonly containers: readonly string[];
  /** The reverse name of an address in a hosts file: a name that is declared explicitly replaces it. */
  readonly isDerived?: true;
}

export function scopeText({ kind, name }: RecordScope): string {
  return kind === "everybody" ? kind : `${kind} "${name}"`;
}
