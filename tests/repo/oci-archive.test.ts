// The OCI archives of a release, made from the archive that a builder saves.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

const { writeOciArchive } = (await import(join(ROOT, 'release/lib/oci-archive.mjs'))) as {
  writeOciArchive: (options: Readonly<Record<string, unknown>>) => Promise<void>;
};

let work: string;
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'tunnel-oci-'));
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const tar = (...args: string[]): void => {
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
};

const CONFIG = { Entrypoint: ['tini'], Healthcheck: { Test: ['CMD', 'tunnel', 'ready'] } };

/** Writes an archive as `docker save` does. Returns its path. */
const writeSaved = (diffId: (layer: Buffer) => string = sha256): string => {
  const folder = join(work, 'made');
  mkdirSync(folder);
  writeFileSync(join(folder, 'file'), 'content');
  tar('-cf', join(folder, 'layer.tar'), '-C', folder, 'file');
  const layer = readFileSync(join(folder, 'layer.tar'));
  const rootfs = { type: 'layers', diff_ids: [`sha256:${diffId(layer)}`] };
  const image = { architecture: 'amd64', os: 'linux', container: 'of the build', config: CONFIG, rootfs };
  writeFileSync(join(folder, 'image.json'), JSON.stringify(image));
  const list = [{ Config: 'image.json', RepoTags: ['one:1'], Layers: ['layer.tar'] }];
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(list));
  tar('-cf', join(work, 'saved.tar'), '-C', folder, 'manifest.json', 'image.json', 'layer.tar');
  return join(work, 'saved.tar');
};

// The archive is written with options of GNU tar.
it.runIf(process.platform === 'linux')(
  'the archive names the image, keeps the health check, and every blob has its hash',
  async () => {
    const file = join(work, 'image.tar');
    await writeOciArchive({ saved: writeSaved(), tag: 'hatchway-client:1', file, work, commitSecs: 1_700_000_000 });
    const folder = join(work, 'read');
    mkdirSync(folder);
    tar('-xf', file, '-C', folder);
    const json = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8')) as Record<string, never>;
    const blob = ({ digest }: { digest: string }): string => `blobs/${digest.replace(':', '/')}`;
    const { manifests } = json('index.json') as unknown as { manifests: { digest: string; annotations: object }[] };
    expect(manifests[0]?.annotations).toEqual({ 'org.opencontainers.image.ref.name': 'hatchway-client:1' });
    const manifest = json(blob(manifests[0]!)) as unknown as {
      config: { digest: string };
      layers: { digest: string }[];
    };
    expect(json(blob(manifest.config))).toMatchObject({ architecture: 'amd64', config: CONFIG });
    expect(json(blob(manifest.config))).not.toHaveProperty('container');
    const blobs = readdirSync(join(folder, 'blobs/sha256'));
    expect(blobs).toHaveLength(3);
    for (const name of blobs) expect(sha256(readFileSync(join(folder, 'blobs/sha256', name)))).toBe(name);
    // `docker load` reads this list.
    expect(json('manifest.json')).toEqual([
      { Config: blob(manifest.config), RepoTags: ['hatchway-client:1'], Layers: manifest.layers.map(blob) },
    ]);
  },
);

it.runIf(process.platform === 'linux')('a layer that does not match the image is refused', async () => {
  const saved = writeSaved(() => '0'.repeat(64));
  const options = { saved, tag: 'hatchway-client:1', file: join(work, 'image.tar'), work, commitSecs: 0 };
  await expect(writeOciArchive(options)).rejects.toThrow('the layers do not match the image');
});
