/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /the reader of dnstap is away/,
      "The program that reads [dnstap](dnstap.md) at `path` is not there, or has left: `reason` says which. dns11 connects again, and answers meanwhile.",
    ],
  ],
} as const;
