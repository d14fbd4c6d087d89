/** For docs/codes.md, what to do about errors whose texts do not say so; for docs/log-messages.md, what messages of the log mean. */
export const EXPLANATIONS = {
  errors: {
    HOST_DOMAIN_TAKEN:
      "Choose another domain with host-domain, or another zone, such as docker or containers.internal, and reload.",
  },
  log: [
    [
      /container names do not resolve on the host/,
      "Names on the host (--host-names) are off for now: `reason` says why and what to change. Containers are served as usual.",
    ],
    [
      /some names do not resolve on the host/,
      "Names on the host (--host-names) work, except for what `warning` says: a zone that exists elsewhere, or programs that do not ask.",
    ],
  ],
} as const;
