// The manifest of a backup: the list of its files with their hashes, and the part of the write-ahead log that the backup needs.
import { isBackupName } from './plan.rules.ts';
import { parseLsn, parseSegment } from './wal-names.rules.ts';

export const MANIFEST_FILE = 'backup_manifest.json';

/** Version of the layout of a backup. A restore refuses other versions. */
const FORMAT = 1;

/** Position in PostgreSQL's write-ahead log. */
export interface WalPosition {
  /** Name of the segment: 24 hexadecimal digits. */
  readonly segment: string;
  /** Position as PostgreSQL writes it, such as `0/16B3748`. */
  readonly lsn: string;
  readonly timeline: number;
}

export interface ManifestFile {
  /** Path below the folder of the backup, with slashes. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface Manifest {
  readonly format: number;
  /** Version of the server that took the backup. */
  readonly version: string;
  /** Major version of PostgreSQL. */
  readonly postgres: number;
  readonly name: string;
  readonly started_at: string;
  readonly finished_at: string;
  /** Position from which the log has to be replayed. */
  readonly wal_start: WalPosition;
  /** Position at which the restored cluster is consistent. */
  readonly wal_end: WalPosition;
  readonly files: readonly ManifestFile[];
  /** True if the backup contains the keys. */
  readonly keys: boolean;
}

export type NewManifest = Omit<Manifest, 'format'>;

/** Returns the text of a manifest: one line per file, so that a person can search it. */
export const manifestText = ({ files, ...head }: NewManifest): string => {
  const lines = files.map((file) => `    ${JSON.stringify(file)}`);
  const top = JSON.stringify({ format: FORMAT, ...head }, null, 2).slice(0, -2);
  return `${top},\n  "files": [\n${lines.join(',\n')}\n  ]\n}\n`;
};

export type ReadManifest = { readonly manifest: Manifest } | { readonly problem: string };

/** Reads a manifest. Returns the reason if the text is not a manifest that this version can restore. */
export const readManifest = (text: string): ReadManifest => {
  const value = parsed(text);
  if (value === null) return { problem: 'it is not valid JSON' };
  if (value['format'] !== FORMAT)
    return { problem: `it has format ${String(value['format'])}, and this version reads format ${FORMAT}` };
  const bad = Object.entries(CHECKS).find(([key, isValid]) => !isValid(value[key]));
  return bad === undefined
    ? { manifest: value as unknown as Manifest }
    : { problem: `its value \`${bad[0]}\` is missing or invalid` };
};

const parsed = (text: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTime = (value: unknown): boolean => typeof value === 'string' && !Number.isNaN(Date.parse(value));

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isPosition = (value: unknown): boolean => {
  if (!isRecord(value)) return false;
  const { segment, lsn, timeline } = value;
  if (typeof segment !== 'string' || typeof lsn !== 'string') return false;
  return parseSegment(segment)?.timeline === timeline && parseLsn(lsn) !== null;
};

const isFile = (value: unknown): value is ManifestFile => {
  if (!isRecord(value)) return false;
  const { path, bytes, sha256 } = value;
  return (
    typeof path === 'string' &&
    isPathInside(path) &&
    isCount(bytes) &&
    typeof sha256 === 'string' &&
    /^[\da-f]{64}$/.test(sha256)
  );
};

const hasNoDuplicate = (paths: readonly string[]): boolean => new Set(paths).size === paths.length;

/** Returns whether a path stays below its folder. A changed manifest must not make a restore write anywhere else. */
const isPathInside = (path: string): boolean =>
  path !== '' &&
  !path.includes('\\') &&
  !path.includes('\0') &&
  path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

const CHECKS: Readonly<Record<keyof NewManifest, (value: unknown) => boolean>> = {
  version: (value) => typeof value === 'string',
  postgres: isCount,
  name: (value) => typeof value === 'string' && isBackupName(value),
  started_at: isTime,
  finished_at: isTime,
  wal_start: isPosition,
  wal_end: isPosition,
  files: (value) => Array.isArray(value) && value.every(isFile) && hasNoDuplicate(value.map(({ path }) => path)),
  keys: (value) => typeof value === 'boolean',
};

/** Returns the size of a backup's files in bytes. */
export const bytesOf = ({ files }: Pick<Manifest, 'files'>): number => files.reduce((sum, { bytes }) => sum + bytes, 0);
