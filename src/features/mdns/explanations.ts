/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /names of the local network do not resolve/,
      "`mdns` is set, and no program of this machine can be asked: the reason says why, `dns11 doctor` what to [install or set](lan-names.md).",
    ],
  ],
} as const;
