/** The names of `--add-host` by DNS. Without a setting: it is there wherever strict mode is not. */
export const EXTRA_HOSTS = {
  load: async () => await import("./extra-hosts.ts"),
} as const;
