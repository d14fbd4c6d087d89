/**
 * ClusterAccess: how the API is reached: by a kubeconfig, or as a pod with the files that Kubernetes mounts for its service
 * account.
 */
import { join } from "node:path";

import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { type ClusterAccess, type ClusterPolicy, SERVICE_ACCOUNT } from "../../base/model/cluster-policy.ts";
import { LIMITS } from "../../base/limits.ts";
import { readBytes, textOf } from "../../config/file/file-text.ts";
import { readKubeconfigInWorker } from "../../config/file/worker.ts";

const FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws a Fault that says what is wrong. */
export async function readClusterAccess(policy: ClusterPolicy & { readonly api: string }): Promise<ClusterAccess> {
  if (policy.api === SERVICE_ACCOUNT) return await serviceAccount(process.env);
  try {
    return await readKubeconfigInWorker(policy.api, policy.context);
  } catch (error) {
    throw new Fault("CLUSTER_CONFIG", `cannot read the kubeconfig: ${reasonOf(error)}`, {
      remedy: "Check kubernetes.api and kubernetes.context: kubectl --kubeconfig FILE get services must work with it.",
    });
  }
}

/** Throws a Fault that says what is wrong. */
export async function readSmallFile(path: string): Promise<string> {
  return textOf(await readBytes(path, LIMITS.clusterFileBytes), path);
}

async function serviceAccount(environment: NodeJS.ProcessEnv): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "443" } = environment;
  try {
    if (host === "") throw new Error("KUBERNETES_SERVICE_HOST is not set");
    return {
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      ca: await readSmallFile(join(FOLDER, "ca.crt")),
      serverName: undefined,
      certificate: undefined,
      key: undefined,
      token: undefined,
      tokenFile: join(FOLDER, "token"),
    };
  } catch (error) {
    throw new Fault("CLUSTER_CONFIG", `this is no pod with a service account: ${reasonOf(error)}`, {
      remedy: "Set kubernetes.api to a kubeconfig, or run dns11 in a pod whose service account token is mounted.",
    });
  }
}
