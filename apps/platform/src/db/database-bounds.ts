// Every bound of the way to the database, by name.

export const DATABASE_BOUNDS = {
  CONNECTIONS: 20,
  CONNECT_TIMEOUT_MS: 5000,
  STATEMENT_TIMEOUT_MS: 15_000,
  /** Longer than that, a database that has not even said so is taken for one that is away. */
  ANSWER_GRACE_MS: 2000,
  IDLE_MS: 30_000,
} as const;
