/**
 * Loaded into a dns11 by NODE_OPTIONS: on SIGUSR2 its event loop is blocked for ever, by a loop that never ends.
 */
process.on("SIGUSR2", () => {
  for (;;);
});
