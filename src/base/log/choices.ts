// Apart from the log, because every command knows its settings, and few load a logger.

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
/** `auto` is text on a terminal and JSON elsewhere. */
export const LOG_FORMATS = ["auto", "text", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
