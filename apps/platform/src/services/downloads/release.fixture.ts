// Writes a release folder as `npm run release` does, with stand-ins for the files. Used by tests only.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A client that only knows its version. */
export const standIn = (version: string): string => `#!/bin/sh\necho ${version}\n`;

export const releaseFiles = (version: string): Record<string, string> => ({
  'THIRD_PARTY_NOTICES.txt': 'notices\n',
  'executables/tunnel-linux-x64': standIn(version),
  'executables/tunnel-linux-arm64': standIn(version),
  'executables/tunnel-win-x64.exe': 'MZ',
  [`npm/hatchway-${version}.tgz`]: 'tarball',
  [`npm/hatchway-client-${version}.tgz`]: 'library',
  [`helm/hatchway-${version}.tgz`]: 'chart',
  'container/server-amd64.tar': 'image',
});

export const sha256Of = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

export interface WrittenRelease {
  readonly version?: string;
  readonly files?: Readonly<Record<string, string | Buffer>>;
}

/** Writes the files, manifest.json and SHA256SUMS, and returns the folder. */
export const writeRelease = (
  dir: string,
  { version = '1.2.3', files = releaseFiles(version) }: WrittenRelease = {},
): string => {
  const described = Object.entries(files).map(([path, content]) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
    return { path, bytes: Buffer.byteLength(content), sha256: sha256Of(content) };
  });
  const manifest = JSON.stringify({ version, commit: 'abc123', node: { 'linux-x64': '24.21.0' }, files: described });
  writeFileSync(join(dir, 'manifest.json'), manifest);
  const sums = [...described, { path: 'manifest.json', sha256: sha256Of(manifest) }];
  writeFileSync(join(dir, 'SHA256SUMS'), sums.map(({ path, sha256 }) => `${sha256}  ${path}\n`).join(''));
  return dir;
};
