// Bounds of what an edge knows of names that belong to somebody: EDGE_LIMITS has them.

const KiB = 1024;
const MiB = 1024 * 1024;

export const NAME_LIMITS = {
  // --- names that belong to somebody ---
  /** reserved names and ports that an edge knows; a snapshot with more is not taken */
  RESERVED_NAMES_MAX: 1_000_000,
  /** one line of the snapshot */
  NAMES_LINE_MAX_BYTES: 4 * KiB,
  /** for the whole snapshot of reserved names; 100,000 take a second */
  NAMES_SNAPSHOT_MS: 60_000,
  /** rows that are read in one turn of the event loop, of the snapshot or a file */
  NAMES_ROWS_PER_TURN: 200,
  /** a larger file of names is none of ours: 100,000 reserved ones have some 15 MB */
  NAMES_FILE_MAX_BYTES: 256 * MiB,
  /** changes that wait for the disk; with more, the whole file is written anew instead */
  NAMES_FILE_QUEUE_CHARS: 1 * MiB,
  /** lines behind the last whole one; then the file is written anew */
  NAMES_FILE_TAIL_CHARS: 4 * MiB,
  /** how long changes of names.json are gathered before it is written anew */
  NAMES_JSON_WRITE_MS: 100,
  /** and so many times as long as the last writing took, when that is longer: a large file costs no more time than a small one */
  NAMES_JSON_WRITE_PAUSE: 10,
  /** rows of names.json; with more the released ones go before their time */
  STANDALONE_NAMES_MAX: 20_000,
  /** for the change that tells of an own domain which the platform has just let a tunnel in at */
  DOMAIN_HEARD_MS: 2000,
  /** subdomains that were open here, each remembered for its account while the platform is away; the longest unused is forgotten */
  USED_NAMES_MAX: 10_000,
  /** of one account: no more than it can hold */
  USED_NAMES_PER_ACCOUNT_MAX: 100,
  /** so long after its last use here */
  USED_NAMES_MS: 30 * 24 * 3_600_000,
} as const;
