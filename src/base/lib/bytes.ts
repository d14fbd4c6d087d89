/**
 * copyBytes: copies a few bytes. Buffer's own copy allocates an object for the copied part, one for each packet; for as
 * few bytes as a packet has, a loop is also faster.
 */
const FEW = 256;

export function copyBytes(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > FEW) to.set(from.subarray(start, end), at);
  else for (let i = start, j = at; i < end; i++, j++) to[j] = from[i] as number;
}
