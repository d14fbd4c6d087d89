/**
 * ClusterPolicy: the Kubernetes cluster whose names containers resolve, and how its API is reached.
 */

/** The API as a pod reaches it, with the token that Kubernetes mounts. */
export const SERVICE_ACCOUNT = "service-account";

export interface ClusterPolicy {
  /** The path of a kubeconfig, or `service-account`; undefined: no cluster is used. */
  readonly api: string | undefined;
  /** The context of the kubeconfig; undefined: its current one. */
  readonly context: string | undefined;
  /** The domain of the cluster. */
  readonly zone: string;
  /** How long names are answered that the API has not confirmed. */
  readonly staleSecondsMax: number;
}

export const CLUSTER_DEFAULTS: ClusterPolicy = {
  api: undefined,
  context: undefined,
  zone: "cluster.local",
  staleSecondsMax: 86_400,
};

/** How the API is reached, from a kubeconfig or a service account. */
export interface ClusterAccess {
  /** Its URL. */
  readonly server: string;
  /** The certificates of the authority that signed its certificate, in PEM; undefined for those that Node knows. */
  readonly ca: string | undefined;
  /** The name in its certificate, where that is another one than in the URL. */
  readonly serverName: string | undefined;
  /** Of the client, in PEM. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly token: string | undefined;
  /** A file with the token, which is replaced before the token expires. */
  readonly tokenFile: string | undefined;
}
