/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /cannot restore the resolv\.conf of a guest/,
      "Its programs go on asking the [listener](listener.md#gvisor-and-kata-containers): `reason` says why. `dns11 cleanup` tries again; a restart of the container makes a new file.",
    ],
    [
      /several containers have an address, the listener answers none/,
      "Networks with overlapping subnets. The [listener](listener.md) cannot tell these containers apart; in their namespaces they are served as usual.",
    ],
    [
      /the listener on the host does not answer/,
      "The [listener](listener.md) is off for now, and tried again every 10 seconds: `reason` says why and what to change. Containers are served as usual.",
    ],
  ],
} as const;
