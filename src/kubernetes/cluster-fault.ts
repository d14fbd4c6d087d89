/**
 * ClusterFaults: what can go wrong with the API of a cluster, as Faults with a code to branch on.
 */
import { Fault } from "../base/lib/fault.ts";

const CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE";
const CLUSTER_CERTIFICATE = "CLUSTER_CERTIFICATE";
const CLUSTER_CREDENTIALS = "CLUSTER_CREDENTIALS";
const CLUSTER_PERMISSION = "CLUSTER_PERMISSION";
const CLUSTER_EXPIRED = "CLUSTER_EXPIRED";
const CLUSTER_TOO_LARGE = "CLUSTER_TOO_LARGE";
const CLUSTER_FAILED = "CLUSTER_FAILED";

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const GONE = 410;
const REASON_CHARS = 200;

/** Errors of OpenSSL and of Node's check of a certificate. */
const CERTIFICATE_CODES =
  /^(?:CERT_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_|INVALID_CA|EPROTO)/;

export function isTooLarge(error: unknown): boolean {
  return error instanceof Fault && error.code === CLUSTER_TOO_LARGE;
}

/** The API does not have the changes since then any more. */
export function isExpired(error: unknown): boolean {
  return error instanceof Fault && error.code === CLUSTER_EXPIRED;
}

export function connectionFault(server: string, error: NodeJS.ErrnoException): Fault {
  const reason =
    error.code === undefined || error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`;
  return CERTIFICATE_CODES.test(error.code ?? "")
    ? new Fault(CLUSTER_CERTIFICATE, `the certificate of the API at ${server}, or ours, is not valid: ${reason}`, {
        remedy: "Check certificate-authority, tls-server-name and the client's certificate in the kubeconfig.",
      })
    : new Fault(CLUSTER_UNREACHABLE, `cannot reach the API at ${server}: ${reason}`, {
        remedy: "Check that the cluster runs and that this machine can connect to it.",
      });
}

export function timeoutFault(server: string, ms: number): Fault {
  return new Fault(CLUSTER_UNREACHABLE, `the API at ${server} did not reply within ${ms} ms`, {
    remedy: "Check that the cluster runs and that this machine can connect to it.",
  });
}

export function tooLargeFault(server: string, bytesMax: number): Fault {
  return new Fault(CLUSTER_TOO_LARGE, `a reply of the API at ${server} is longer than ${bytesMax} bytes`, {
    remedy: "Find the Service or EndpointSlice that is so large, and remove annotations from it.",
  });
}

export function tokenFault(server: string, reason: string): Fault {
  return new Fault(CLUSTER_CREDENTIALS, `cannot read the token for the API at ${server}: ${reason}`, {
    remedy: "Check tokenFile in the kubeconfig, or the token that Kubernetes mounts into the pod.",
  });
}

/** Something else answers there. */
export function strangerFault(server: string, status: number): Fault {
  return new Fault(
    CLUSTER_FAILED,
    `the server at ${server} replied with HTTP status ${status}, and not as the API does`,
    {
      remedy: "Check the server in the kubeconfig: Kubernetes 1.21 or later has what dns11 reads.",
    },
  );
}

/** An error that the API reports, by its status of HTTP. */
export function reportedFault(server: string, status: number, message: string): Fault {
  const what = `the API at ${server} reports: ${message.slice(0, REASON_CHARS)}`;
  if (status === GONE) return new Fault(CLUSTER_EXPIRED, what);
  if (status === UNAUTHORIZED) {
    return new Fault(CLUSTER_CREDENTIALS, what, {
      remedy: "The token or certificate is not valid, or has expired: make another one.",
    });
  }
  if (status === FORBIDDEN) {
    return new Fault(CLUSTER_PERMISSION, what, {
      remedy: "Grant list and watch of services and endpointslices in all namespaces: see docs/kubernetes.md.",
    });
  }
  return new Fault(CLUSTER_FAILED, what, { remedy: "The log of the API server has the reason." });
}
