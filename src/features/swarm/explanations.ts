/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /^cannot list the services of a swarm network/,
      "Names of services resolve as before. Lists, and names of slots such as web.1, are as old as the last list that was read.",
    ],
  ],
} as const;
