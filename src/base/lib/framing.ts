/** A DNS message in a stream: two bytes of length before it (RFC 1035, 4.2.2). */
const LENGTH_BYTES = 2;

export function withLength(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + message.length);
  bytes.writeUInt16BE(message.length, 0);
  bytes.set(message, LENGTH_BYTES);
  return bytes;
}
