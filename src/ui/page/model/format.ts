/** Format: times, durations and numbers as text, in the reader's own time zone. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** `08:05:27`, and the day where it is not today's. */
export function clock(time: string, nowMs: number): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "";
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return at.toDateString() === new Date(nowMs).toDateString()
    ? text
    : `${two(at.getMonth() + 1)}-${two(at.getDate())} ${text}`;
}

/** `08:05:27.914` */
export function preciseClock(time: string): string {
  const at = new Date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** `26m`, `3h 12m`, `5d 4h` */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

export function milliseconds(ms: number): string {
  if (ms === 0) return "0 ms";
  if (ms < 0.1) return "< 0.1 ms";
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(0)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

export function rate(perMinute: number): string {
  if (perMinute <= 0) return "";
  return perMinute >= 60 ? `${(perMinute / 60).toFixed(perMinute >= 600 ? 0 : 1)}/s` : `${Math.round(perMinute)}/min`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
