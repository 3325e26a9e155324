// Static files, read once at the start: no request accesses the disk, and no path in a request can leave the folder.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { headerOf } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { PlatformEnv } from '../../shared/platform-env.ts';

type Packing = 'br' | 'gzip';

/** Compression formats with their file extensions, in order of preference. */
const PACKINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const satisfies readonly (readonly [Packing, string])[];

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.sh': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};

interface StaticFile {
  readonly type: string;
  /** True if the file name contains a hash of the content. The file can then be cached forever. */
  readonly hashed: boolean;
  readonly etag: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly packed: ReadonlyMap<Packing, Uint8Array<ArrayBuffer>>;
}

/** Static files by path below their folder. The paths contain slashes on every operating system. */
export type StaticFiles = ReadonlyMap<string, StaticFile>;

const KEEP_FOR_EVER = 'public, max-age=31536000, immutable';

/** Reads the files of a folder. Empty if the folder does not exist. */
export const readStaticFiles = (folder: string): StaticFiles => {
  const files = new Map<string, StaticFile>();
  if (!existsSync(folder)) return files;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const type = TYPES[extname(file)];
    if (entry.isFile() && type !== undefined) {
      files.set(relative(folder, file).split(sep).join('/'), readOne(file, type));
    }
  }
  return files;
};

const readOne = (file: string, type: string): StaticFile => {
  const plain = Uint8Array.from(readFileSync(file));
  const packed = PACKINGS.filter(([, ending]) => existsSync(file + ending)).map(
    ([packing, ending]) => [packing, Uint8Array.from(readFileSync(file + ending))] as const,
  );
  return {
    type,
    hashed: /-[\w-]{8}\.\w+$/.test(file) && file.includes(`${sep}assets${sep}`),
    etag: createHash('sha256').update(plain).digest('base64url').slice(0, 27),
    plain,
    packed: new Map(packed),
  };
};

export const sendFile = (context: Context<PlatformEnv>, file: StaticFile): Response => {
  const packing = choosePacking(headerOf(context, 'accept-encoding'), file);
  const etag = `"${file.etag}${packing === null ? '' : `-${packing}`}"`;
  context.header('cache-control', file.hashed ? KEEP_FOR_EVER : 'no-cache');
  context.header('vary', 'accept-encoding');
  context.header('etag', etag);
  if (isKnown(headerOf(context, 'if-none-match'), etag)) return context.body(null, 304);
  const bytes = (packing === null ? undefined : file.packed.get(packing)) ?? file.plain;
  if (packing !== null) context.header('content-encoding', packing);
  context.header('content-type', file.type);
  context.header('content-length', String(bytes.length));
  return context.body(bytes, 200);
};

/** Returns true if the If-None-Match header of the request names this ETag. */
export const isKnown = (header: string | undefined, etag: string): boolean =>
  header !== undefined && header.split(',').some((part) => [etag, '*'].includes(part.trim().replace(/^W\//, '')));

/** Chooses the preferred compression that the caller accepts. Returns null for the uncompressed file. */
const choosePacking = (accepted: string | undefined, { packed }: Pick<StaticFile, 'packed'>): Packing | null => {
  const takes = readAccepted(accepted ?? '');
  for (const packing of packed.keys()) if (takes(packing)) return packing;
  return null;
};

const readAccepted = (header: string): ((packing: Packing) => boolean) => {
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [name = '', ...params] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = params.find((param) => param.startsWith('q='));
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)) || 0);
  }
  return (packing) => (weights.get(packing) ?? weights.get('*') ?? 0) > 0;
};
