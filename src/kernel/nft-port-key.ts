/**
 * NftPortKey: the key of sets that hold addresses with a protocol and a port: ADDRESS . PROTOCOL . PORT, each field in whole words.
 */
export const WORD_BYTES = 4;
/** Of the fields behind the address. */
export const PORT_FIELDS_BYTES = 2 * WORD_BYTES;

interface PortKey {
  readonly address: Buffer;
  readonly protocol: number;
  readonly port: number;
}

export function portKey(address: Uint8Array, protocol: number, port: number): Buffer {
  const key = Buffer.alloc(address.length + PORT_FIELDS_BYTES);
  key.set(address);
  key[address.length] = protocol;
  key.writeUInt16BE(port, address.length + WORD_BYTES);
  return key;
}

export function readPortKey(key: Buffer): PortKey {
  const at = key.length - PORT_FIELDS_BYTES;
  return { address: key.subarray(0, at), protocol: key[at] ?? 0, port: key.readUInt16BE(at + WORD_BYTES) };
}
