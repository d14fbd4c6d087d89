/** For docs/log-messages.md: what messages of the log mean. */
export const EXPLANATIONS = {
  log: [
    [
      /records have mistakes/,
      "Files in the folder of `records-dir` have mistakes, each with file and line. A bad file keeps the names that it had; the others take effect. Correct it; it is read again at once.",
    ],
  ],
} as const;
