import { writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { packWalFile, readPacked, writeSparse } from './wal-files.ts';
import { SEGMENT_BYTES, type Segment } from './wal-names.rules.ts';

const SEGMENT: Segment = { timeline: 1, number: 3 };

let root: TemporaryDirectory;
beforeEach(async () => {
  root = await temporaryDirectory();
});
afterEach(() => root.close());

/** Writes the file of a segment, with the header of its first page and a few bytes behind. */
const writeSegment = ({ timeline, number }: Segment): { readonly path: string; readonly bytes: Buffer } => {
  const bytes = Buffer.alloc(SEGMENT_BYTES);
  bytes.writeUInt16LE(2, 2);
  bytes.writeUInt32LE(timeline, 4);
  bytes.writeBigUInt64LE(BigInt(number * SEGMENT_BYTES), 8);
  bytes.fill(7, 5000, 9000);
  const path = join(root.path, 'segment');
  writeFileSync(path, bytes);
  return { path, bytes };
};

it('a segment is packed and read as it was', async () => {
  const { path, bytes } = writeSegment(SEGMENT);
  const packed = join(root.path, 'packed.gz');
  expect(await packWalFile(path, packed, SEGMENT)).toMatchObject({ bytes: (await stat(packed)).size });
  expect((await readPacked(packed)).equals(bytes)).toBe(true);
});

it('a file that PostgreSQL uses for another segment, or that is missing, is not packed', async () => {
  const { path } = writeSegment({ ...SEGMENT, number: 4 });
  const packed = join(root.path, 'packed.gz');
  expect(await packWalFile(path, packed, SEGMENT)).toBeNull();
  expect(await packWalFile(join(root.path, 'missing'), packed, SEGMENT)).toBeNull();
  await expect(stat(packed)).rejects.toThrow('ENOENT');
});

it('an unpacked segment takes only the disk space of its content', async () => {
  const { bytes } = writeSegment(SEGMENT);
  const path = join(root.path, 'unpacked');
  await writeSparse(path, bytes);
  const { size, blocks } = await stat(path);
  expect(size).toBe(SEGMENT_BYTES);
  expect(blocks * 512).toBeLessThan(1024 * 1024);
});
