/** Module loaded into dns11 by NODE_OPTIONS: SIGWINCH blocks its event loop for ever. */
process.on("SIGWINCH", () => {
  for (;;);
});
