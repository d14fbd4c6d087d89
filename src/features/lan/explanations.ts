/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /does not answer at an address of this host/,
      "An address of the setting [`listen`](other-machines.md#when-an-address-does-not-answer) is not answered for now, and tried again every 10 seconds: `reason` says why. Containers are served as usual.",
    ],
  ],
} as const;
