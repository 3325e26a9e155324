// When a scheduled backup is due. Pure functions: the state of the folder and the time are arguments, so that a restart of the server
// changes nothing.

export interface ScheduleFacts {
  /** Time between two backups. Null if backups are taken only by command. */
  readonly everyMs: number | null;
  /** Times at which the backups in the folder were finished. */
  readonly finishedAt: readonly number[];
  /** Whether archived log is missing between the newest backup and now, so that no backup reaches the present. */
  readonly hasGap: boolean;
  /** Failed attempts in a row, and the time since the last of them. */
  readonly failures: number;
  readonly sinceFailureMs: number;
  /** Time since this process finished a backup because of a gap. Infinite if it has not. */
  readonly sinceGapBackupMs: number;
}

/** Why a backup is due. */
export type DueReason = 'first' | 'interval' | 'gap';

/**
 * Shortest time between two backups because of gaps. The first gap is answered at once. A disk that is full again and again, or a gap that
 * a new backup does not end, for example because a wrong clock made an older backup look newer, must not cause one backup after the other.
 */
const GAP_PAUSE_MS = 10 * 60_000;
const FIRST_RETRY_MS = 60_000;
const LAST_RETRY_MS = 3_600_000;
/**
 * A backup from further in the future was made with a wrong clock, and is ignored. Otherwise no backup would be due until that time.
 */
const CLOCK_TOLERANCE_MS = 3_600_000;

/** Returns why a backup is due now. Null if none is due. */
export const backupDue = (facts: ScheduleFacts, now: number): DueReason | null => {
  const { everyMs, failures, sinceFailureMs, sinceGapBackupMs, hasGap } = facts;
  if (everyMs === null || (failures > 0 && sinceFailureMs < retryDelayMs(failures))) return null;
  const last = lastFinished(facts.finishedAt, now);
  if (last === null) return 'first';
  if (hasGap && sinceGapBackupMs >= GAP_PAUSE_MS) return 'gap';
  return now - last >= everyMs ? 'interval' : null;
};

/** Returns the time of the newest backup. Null if there is none, or only backups from an impossible time. */
export const lastFinished = (finishedAt: readonly number[], now: number): number | null => {
  const past = finishedAt.filter((at) => at <= now + CLOCK_TOLERANCE_MS);
  return past.length === 0 ? null : Math.max(...past);
};

const retryDelayMs = (failures: number): number =>
  Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20));

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface StandFacts {
  readonly isOn: boolean;
  readonly everyMs: number | null;
  readonly lastAt: number | null;
}

/** Returns the line about backups at the server's start. */
export const backupLine = ({ isOn, everyMs, lastAt }: StandFacts, now: number): string => {
  if (!isOn) return 'backup: off, see docs/backup.md';
  if (lastAt !== null) return `backup: last ${agoText(Math.max(0, now - lastAt))} ago`;
  const next = everyMs === null ? 'take one with `tunnel-server backup create`' : 'the first one begins now';
  return `backup: none yet, ${next}`;
};

const agoText = (ms: number): string => {
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  return ms < 48 * HOUR_MS ? `${Math.floor(ms / HOUR_MS)} h` : `${Math.floor(ms / (24 * HOUR_MS))} days`;
};
