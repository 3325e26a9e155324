// Metrics of backups. In a stack, the edge exports the metrics. Without an edge, the platform exports the metrics.
import type { Metrics } from './metrics.ts';

export interface BackupFigures {
  /** Unix time in seconds at which the newest backup was finished; 0 if there is none. */
  readonly lastSuccessSecs: number;
  /** Number of failed backups. */
  readonly failures: number;
  /** Number of failed attempts to archive a segment of the database's log. */
  readonly archiveFailures: number;
}

/** Adds the metrics. If `figures` returns null, backups are off, and the metrics have no values. */
export const addBackupSeries = (metrics: Metrics, figures: () => BackupFigures | null): void => {
  const series = (pick: (figures: BackupFigures) => number) => () => {
    const now = figures();
    return now === null ? [] : [{ labels: {}, value: pick(now) }];
  };
  metrics.seriesOf(
    'tunnel_backup_last_success_timestamp_seconds',
    'Unix time at which the newest backup was finished; 0 if there is none',
    'gauge',
    series(({ lastSuccessSecs }) => lastSuccessSecs),
  );
  metrics.seriesOf(
    'tunnel_backup_failures_total',
    'Scheduled backups that failed',
    'counter',
    series(({ failures }) => failures),
  );
  metrics.seriesOf(
    'tunnel_wal_archive_failures_total',
    "Failed attempts to archive a segment of the database's log",
    'counter',
    series(({ archiveFailures }) => archiveFailures),
  );
};
