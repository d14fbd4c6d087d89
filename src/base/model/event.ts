/**
 * Event: something to log, reported by code that does not depend on the log.
 */
export type ReportEvent = (about: Readonly<Record<string, unknown>>, text: string, level?: "info" | "warn") => void;
