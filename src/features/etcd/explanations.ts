/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /cannot publish to etcd/,
      "What has changed is not written yet; `reason` says why, and `remedy` what to do. What is written stays for as long as the lease can be renewed.",
    ],
    [
      /cannot withdraw the containers/,
      "etcd could not be reached when dns11 stopped. Other machines see the containers of this one until its lease (`etcd.lease`) ends.",
    ],
    [
      /etcd is away/,
      "No member of etcd can be used; `reason` says why, and `remedy` what to do. The last known names are answered for `etcd.max-stale`, then queries below the zones fail.",
    ],
    [
      /skipped records of etcd/,
      "Records that cannot be read are left out; `first` names some of them, `dns11 status` more. Correct or delete these keys.",
    ],
  ],
} as const;
