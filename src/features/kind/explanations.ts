/** For docs/codes.md, what to do about errors whose texts do not say so; for docs/log-messages.md, what messages of the log mean. */
export const EXPLANATIONS = {
  errors: {
    LINK_IS_GONE: "Another program removed the interface of a temporary pod. Run the check again.",
    NO_FREE_ADDRESS: "Remove other programs' addresses in that range from the node.",
    NO_NODE: "Control socket: name the node in the request.",
    POD_NOT_READY: "The machine is very busy, or the node is being stopped. Run the check again.",
  },
  log: [
    [
      /cannot read the node's addresses/,
      "With `run --in-node`: what was read last is served. dns11 tries again every two seconds.",
    ],
  ],
} as const;
