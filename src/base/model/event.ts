/**
 * News: what happened, for whoever keeps the log, so that who tells it need not know of logs.
 */
export type ReportEvent = (about: Readonly<Record<string, unknown>>, text: string, level?: "info" | "warn") => void;
