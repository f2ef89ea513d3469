// Numbers, times and money as people read them.

export function ago(iso: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (seconds < 45) return "now";
  if (seconds < 3600) return `${Math.round(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)}h`;
  return `${Math.round(seconds / 86_400)}d`;
}

export function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function hourAndMinute(iso: string): string {
  return new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** The time of day; on another day than today that day as well. */
export function until(iso: string): string {
  const then = new Date(iso);
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday
    ? hourAndMinute(iso)
    : then.toLocaleString([], { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

export function moment(iso: string): string {
  return new Date(iso).toLocaleString();
}

export function duration(from: string, to: string | number): string {
  return lasting((typeof to === "number" ? to : Date.parse(to)) - Date.parse(from));
}

export function lasting(ms: number): string {
  if (ms < 95) return "";
  if (ms < 950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The turns of a conversation, without those that a rewind left behind. */
export function turnsOf({ turnCount, turnsLeftBehind = 0 }: { turnCount: number; turnsLeftBehind?: number }): string {
  const count = turnCount - turnsLeftBehind;
  return count === 1 ? "1 turn" : `${count} turns`;
}

export function short(count: number): string {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function money(cost: Record<string, number>): string {
  return Object.entries(cost)
    .map(([currency, amount]) => sum(currency, amount))
    .join(" + ");
}

/** Agents also count in credits and requests, which no browser knows as a currency. */
function sum(currency: string, amount: number): string {
  const digits = { maximumFractionDigits: amount < 1 ? 4 : 2 };
  const isMoney = /^[A-Z]{3}$/.test(currency);
  const text = new Intl.NumberFormat([], isMoney ? { ...digits, style: "currency", currency } : digits).format(amount);
  return isMoney ? text : `${text} ${currency}`;
}

/** What a server says to a person at a terminal, without the commands and fields that a page has buttons for. */
export function forPage(text: string): string {
  const left = text.replace(
    /(?:^|(?<=[.!?;] ))[^.!?;]*(?:`ostler [^`]*`|`--\w[^`]*`|`(?:env|provider|credential)`)[^.!?;]*(?:[.!?;] ?|$)/g,
    "",
  );
  return left.trim() || text;
}

export function bytes(count: number): string {
  return count < 1024
    ? `${count} B`
    : count < 1024 * 1024
      ? `${(count / 1024).toFixed(1)} kB`
      : `${(count / 1024 / 1024).toFixed(1)} MB`;
}
