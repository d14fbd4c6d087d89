/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /^the kernel cannot answer queries/,
      "`reason` says what is missing: Linux 6.6, the call bpf(2), or the rule backend nft-owner. The process answers everything, as with `answers: process`. Information by default, as nothing is lost but speed; a warning with `answers: kernel`.",
    ],
  ],
} as const;
