/**
 * Lease: the calls for leases of etcd. What is written with a lease ends with it, so that a machine that has failed is gone
 * for all others.
 */
import { ETCD_LEASE_LOST, isEtcdFault, reportedFault } from "../etcd-fault.ts";
import { numberOf, objectOf, streamError, textOf } from "../messages.ts";

/** The part of a gateway that publishing needs. */
export interface Calls {
  call(path: string, body: object, signal?: AbortSignal): Promise<unknown>;
}

/** Returns its id. */
export async function grantLease(gateway: Calls, seconds: number, signal: AbortSignal): Promise<string> {
  const reply = await gateway.call("/v3/lease/grant", { TTL: String(seconds) }, signal);
  return textOf(objectOf(reply)["ID"]);
}

/** Returns whether it exists: then it lasts as long as it was granted for, from now on. */
export async function renewLease(gateway: Calls, lease: string, signal: AbortSignal): Promise<boolean> {
  // A stream of one message.
  const reply = await gateway.call("/v3/lease/keepalive", { ID: lease }, signal);
  const error = streamError(reply);
  if (error !== undefined) throw reportedFault("its gateway", error.code, error.message);
  return numberOf(objectOf(objectOf(reply)["result"])["TTL"]) > 0;
}

/** How long it was granted for; 0 if it is gone. */
export async function grantedSeconds(gateway: Calls, lease: string, signal: AbortSignal): Promise<number> {
  const reply = objectOf(await gateway.call("/v3/lease/timetolive", { ID: lease }, signal));
  return numberOf(reply["TTL"]) === 0 ? 0 : numberOf(reply["grantedTTL"]);
}

/** Ends it, and everything that was written with it. */
export async function revokeLease(gateway: Calls, lease: string, signal: AbortSignal): Promise<void> {
  try {
    await gateway.call("/v3/lease/revoke", { ID: lease }, signal);
  } catch (error) {
    if (!isEtcdFault(error, ETCD_LEASE_LOST)) throw error;
  }
}
