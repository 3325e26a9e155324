// How the embedded server is set: for a small machine, durable, on its Unix socket alone.

export type PostgresSettings = Readonly<Record<string, string>>;

const SETTINGS: PostgresSettings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '60',
  shared_buffers: '64MB',
  fsync: 'on',
  synchronous_commit: 'on',
  // Compiling a query takes longer than any of ours runs.
  jit: 'off',
  // The processes of replication are of no use here.
  max_wal_senders: '0',
  wal_level: 'minimal',
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  log_destination: 'stderr',
  logging_collector: 'off',
  log_checkpoints: 'off',
  // Without the errors of queries: whoever sent one is told, and its text may hold an address or a token.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_line_prefix: '',
};

/** After a crash: the file system at once instead of some 1400 files one by one, which on a busy disk takes longer than all else. */
const ON_LINUX: PostgresSettings = { recovery_init_sync_method: 'syncfs' };

export const settingArgs = (socketFolder: string, more: PostgresSettings): string[] => {
  const here = process.platform === 'linux' ? ON_LINUX : {};
  const all = { ...SETTINGS, ...here, unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"`, ...more };
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
};
