// Creates a temporary folder for one test, and removes the folder on close().
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryDirectory {
  readonly path: string;
  close(): Promise<void>;
}

export const temporaryDirectory = async (): Promise<TemporaryDirectory> => {
  const path = await mkdtemp(join(tmpdir(), 'tunnel-test-'));
  return { path, close: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) };
};
