/**
 * LanFault: why dns11 does not answer at addresses of the host.
 */
import { Fault } from "../../base/lib/fault.ts";

export function portTaken(address: string, holder: string): Fault {
  return new Fault("LISTEN_PORT_TAKEN", `Port 53 of ${address} is taken: by ${holder}`, {
    remedy: "Have it listen at other addresses, or remove this one from the setting listen.",
  });
}

export function unfitBackend(backend: string): Fault {
  return new Fault(
    "LISTEN_NEEDS_NFT",
    `The setting listen needs rules that end with their process, and the rule backend is ${backend}`,
    { remedy: "Use Linux 5.12 or later with nf_tables, or remove the setting listen." },
  );
}

/** It owns the tables. */
export function anotherInstance(cause: unknown): Fault {
  return new Fault("LISTEN_ELSEWHERE", "Another dns11 answers at addresses of this host", {
    cause,
    remedy: "One instance of a host can have the setting listen: remove it from the other one.",
  });
}
