// Every bound of the platform by name; those of the way to the database are in db/database-bounds.ts.

const KiB = 1024;
const MiB = 1024 * KiB;

export const PLATFORM_BOUNDS = {
  /** Of a request to the API. */
  BODY_MAX_BYTES: 64 * KiB,
  /** Of an edge's call: a batch holds up to 1000 records of its journal. */
  EDGE_LINK_BODY_MAX_BYTES: 2 * MiB,
  HEAD_TIMEOUT_MS: 15_000,
  REQUEST_TIMEOUT_MS: 30_000,
  CONNECTIONS_MAX: 4096,
  /** What requests under way get to finish when the process stops. */
  HTTP_STOP_GRACE_MS: 2000,
  /** Of GET /health/db. */
  DATABASE_PROBE_MS: 1000,
  /** What a caller is told to wait while the database is away. */
  DATABASE_RETRY_AFTER_SECS: 2,
} as const;
