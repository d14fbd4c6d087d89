/**
 * RecordData: the data of records in wire format, from their parts. Names are wire labels with the terminating zero.
 */
import { setU16 } from "./bytes.ts";

const SRV_FIXED_BYTES = 6;
const MX_FIXED_BYTES = 2;
const STRING_BYTES_MAX = 255;

interface ServiceData {
  readonly priority: number;
  readonly weight: number;
  readonly port: number;
  readonly target: Uint8Array;
}

export function serviceData({ priority, weight, port, target }: ServiceData): Uint8Array {
  const data = new Uint8Array(SRV_FIXED_BYTES + target.length);
  setU16(data, 0, priority);
  setU16(data, 2, weight);
  setU16(data, 4, port);
  data.set(target, SRV_FIXED_BYTES);
  return data;
}

export function mailData(preference: number, target: Uint8Array): Uint8Array {
  const data = new Uint8Array(MX_FIXED_BYTES + target.length);
  setU16(data, 0, preference);
  data.set(target, MX_FIXED_BYTES);
  return data;
}

/** A long text becomes several strings, which readers concatenate. */
export function textData(bytes: Uint8Array): Uint8Array {
  const data: number[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += STRING_BYTES_MAX) {
    const string = bytes.subarray(at, at + STRING_BYTES_MAX);
    data.push(string.length, ...string);
  }
  return Uint8Array.from(data);
}
