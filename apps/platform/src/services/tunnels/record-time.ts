// Times of edges, which are milliseconds since the epoch, as the tables keep them.

/** The end of the year 9999: later ones are written in ways that not everybody reads. */
const LAST_MS = 253_402_300_799_999;

export const timeOf = (ms: number): Date => new Date(Math.min(ms, LAST_MS));

/** In UTC, YYYY-MM-DD. */
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);
