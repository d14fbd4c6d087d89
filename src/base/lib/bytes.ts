/**
 * copyBytes: a few bytes from one place to another. Buffer's own copy makes an object for the part that is copied, which is
 * one for each packet; for as few bytes as are in one, a loop is faster as well.
 */
const FEW = 256;

export function copyBytes(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > FEW) to.set(from.subarray(start, end), at);
  else for (let i = start, j = at; i < end; i++, j++) to[j] = from[i] as number;
}
