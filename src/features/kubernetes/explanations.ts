/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /Kubernetes is away/,
      "The API of the cluster cannot be used; `reason` says why, and `remedy` what to do. The last known names are answered for `kubernetes.max-stale`, then queries below its zone fail.",
    ],
    [
      /skipped objects of Kubernetes/,
      "Services or EndpointSlices that are not valid are left out; `first` names some of them, `dns11 status` more.",
    ],
  ],
} as const;
