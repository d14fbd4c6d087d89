/** NEEDS_ROOT: options of a test that mounts or makes devices. Everybody else runs the other tests of its file. */
export const NEEDS_ROOT = process.getuid?.() === 0 ? {} : ({ skip: "needs root" } as const);
