import { Fault } from "../../../base/lib/fault.ts";
import { ETCD_LIMITS } from "../limits.ts";

/** Numbers of gRPC: the gateway reports its errors as JSON, with a status of HTTP that says less. */
const GRPC = { PERMISSION_DENIED: 7, RESOURCE_EXHAUSTED: 8 };

const ETCD_UNREACHABLE = "ETCD_UNREACHABLE";
const ETCD_CERTIFICATE = "ETCD_CERTIFICATE";
const ETCD_CREDENTIALS = "ETCD_CREDENTIALS";
export const ETCD_TOKEN = "ETCD_TOKEN";
const ETCD_PERMISSION = "ETCD_PERMISSION";
const ETCD_NO_SPACE = "ETCD_NO_SPACE";
export const ETCD_TOO_LARGE = "ETCD_TOO_LARGE";
const ETCD_COMPACTED = "ETCD_COMPACTED";
const ETCD_FAILED = "ETCD_FAILED";
export const ETCD_LEASE_LOST = "ETCD_LEASE_LOST";
const ETCD_MACHINE_TAKEN = "ETCD_MACHINE_TAKEN";
const ETCD_FOREIGN_KEYS = "ETCD_FOREIGN_KEYS";

/** Another member may do better. */
const MEMBER_FAULTS: ReadonlySet<string> = new Set([ETCD_UNREACHABLE, ETCD_CERTIFICATE, ETCD_FAILED]);

export function isMemberFault(error: unknown): boolean {
  return error instanceof Fault && MEMBER_FAULTS.has(error.code);
}

export function isEtcdFault(error: unknown, code: string): boolean {
  return error instanceof Fault && error.code === code;
}

/** Errors of OpenSSL and of Node's check of a certificate. */
const CERTIFICATE_CODES =
  /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_|INVALID_CA|EPROTO)/;

/** The connection to a member failed. */
export function connectionFault(endpoint: string, error: NodeJS.ErrnoException): Fault {
  const reason =
    error.code === undefined || error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`;
  return CERTIFICATE_CODES.test(error.code ?? "")
    ? new Fault(ETCD_CERTIFICATE, `the certificate of etcd at ${endpoint} is not valid: ${reason}`, {
        remedy: "Set etcd.ca to the authority that signed it, and use the host name that it was made for.",
      })
    : new Fault(ETCD_UNREACHABLE, `cannot reach etcd at ${endpoint}: ${reason}`, {
        remedy: "Check that etcd runs and that this machine can connect to it.",
      });
}

export function timeoutFault(endpoint: string, ms: number): Fault {
  return new Fault(ETCD_UNREACHABLE, `etcd at ${endpoint} did not reply within ${ms} ms`, {
    remedy: "Check that the cluster has a leader, without which no member replies, and that its disk is not too slow.",
  });
}

export function tooLargeFault(endpoint: string, bytesMax: number): Fault {
  return new Fault(ETCD_TOO_LARGE, `a reply of etcd at ${endpoint} is longer than ${bytesMax} bytes`, {
    remedy: "Remove large values below the prefix: a record is short.",
  });
}

/** A reply that is not one of etcd's gateway. */
export function strangerFault(endpoint: string, status: number): Fault {
  return new Fault(ETCD_FAILED, `the server at ${endpoint} replied with HTTP status ${status} and no JSON`, {
    remedy: "Check that etcd.endpoints has the client URLs of etcd 3.4 or later, and that its gRPC gateway is on.",
  });
}

/** JSON, but not of a store. */
export function noEtcdFault(what: "has no revision" | "has keys before the first one"): Fault {
  return new Fault(ETCD_FAILED, `a reply to a request for keys ${what}, so it is not of etcd`, {
    remedy: "Check that etcd.endpoints has the client URLs of etcd 3.4 or later.",
  });
}

/** An error that a member reports. */
export function reportedFault(endpoint: string, code: number, message: string): Fault {
  const what = `etcd at ${endpoint} reports: ${message.slice(0, REASON_CHARS)}`;
  if (/compacted/.test(message)) return new Fault(ETCD_COMPACTED, what);
  if (/invalid auth token|user name is empty/.test(message)) {
    const remedy = "etcd requires a user: set etcd.user and etcd.password-file.";
    return new Fault(ETCD_TOKEN, what, { remedy });
  }
  if (/authentication failed/.test(message)) {
    return new Fault(ETCD_CREDENTIALS, what, { remedy: "Check etcd.user and the password in etcd.password-file." });
  }
  if (/lease not found/.test(message)) return new Fault(ETCD_LEASE_LOST, what);
  if (code === GRPC.PERMISSION_DENIED) {
    const remedy = "Grant the user's role permission for the keys below the prefix.";
    return new Fault(ETCD_PERMISSION, what, { remedy });
  }
  if (code === GRPC.RESOURCE_EXHAUSTED && message.includes("space exceeded")) {
    const remedy = "Compact and defragment etcd, then clear its alarm: it accepts no writes until then.";
    return new Fault(ETCD_NO_SPACE, what, { remedy });
  }
  return new Fault(ETCD_FAILED, what, { remedy: "The log of etcd has the reason." });
}

/** What a watch was canceled for: `rpc error: code = PermissionDenied desc = ...`. */
export function canceledFault(endpoint: string, reason: string): Fault {
  const code = reason.includes("PermissionDenied") ? GRPC.PERMISSION_DENIED : 0;
  return reportedFault(endpoint, code, reason.replace(/^.*desc = /s, ""));
}

/** Another dns11 publishes as this machine. */
export function machineTakenFault(machine: string): Fault {
  return new Fault(ETCD_MACHINE_TAKEN, `another dns11 publishes as the machine "${machine}"`, {
    remedy: "Give each machine a name of its own with etcd.machine. If the other one has ended, its lease ends soon.",
  });
}

/** Others have written more below the key of this machine than is read. */
export function foreignKeysFault(root: string): Fault {
  return new Fault(ETCD_FOREIGN_KEYS, `etcd has more than ${ETCD_LIMITS.ownKeys} keys below ${root}`, {
    remedy: "Delete those that are not from dns11, and give each machine a user and a role of its own.",
  });
}

/** Makes it a fault of writing, which says which permission is missing. */
export function notWrittenFault(fault: Fault, root: string): Fault {
  if (fault.code !== ETCD_PERMISSION) return fault;
  return new Fault(fault.code, fault.message, {
    remedy: `Grant the user's role permission to read and write the keys below ${root}.`,
  });
}

const REASON_CHARS = 200;
