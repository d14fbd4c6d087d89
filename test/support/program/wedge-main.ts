/**
 * Loaded into a dns11 by NODE_OPTIONS: on SIGWINCH its event loop is blocked for ever, by a loop that never ends.
 */
process.on("SIGWINCH", () => {
  for (;;);
});
