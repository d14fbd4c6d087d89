/**
 * Data of records in a zone, in wire format.
 */
import { setU16 } from "../../../base/dns/bytes.ts";

/** All endpoints of a service are equal. */
const PRIORITY = 0;
const WEIGHT = 100;
const SRV_FIXED_BYTES = 6;

/** An SRV record to a name in wire format. */
export function serviceRecord(port: number, target: Uint8Array): Uint8Array {
  const data = new Uint8Array(SRV_FIXED_BYTES + target.length);
  setU16(data, 0, PRIORITY);
  setU16(data, 2, WEIGHT);
  setU16(data, 4, port);
  data.set(target, SRV_FIXED_BYTES);
  return data;
}

/** A TXT record with one string. */
export function text(value: string): Uint8Array {
  return Uint8Array.of(value.length, ...Buffer.from(value, "latin1"));
}
