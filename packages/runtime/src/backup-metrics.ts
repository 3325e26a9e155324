// Metrics of the backups that the server's process takes. The process that answers Prometheus exports the metrics: the edge in a stack, and
// the platform without an edge.
import type { Metrics } from './metrics.ts';

export interface BackupFigures {
  /** Unix time in seconds at which the newest backup was finished; 0 if there is none. */
  readonly lastSuccessSecs: number;
  /** Number of failed backups. */
  readonly failures: number;
  /** Number of failed attempts to archive a segment of the database's log. */
  readonly archiveFailures: number;
}

/** Adds the metrics. While `figures` returns null, because backups are off, the metrics have no values. */
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
