import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '@tunnel/testkit';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

/** Bundles the transport like a release, and loads the bundle in a folder where `prepare` provides `udx-native` or not. */
const loadIn = async (prepare: (folder: string) => void): Promise<string> => {
  const folder = await temporaryDirectory();
  try {
    await build({
      entryPoints: [fileURLToPath(new URL('udx-transport.ts', import.meta.url))],
      outfile: join(folder.path, 'transport.mjs'),
      bundle: true,
      format: 'esm',
      platform: 'node',
      conditions: ['source'],
      external: ['udx-native'],
    });
    prepare(folder.path);
    const script = "import('./transport.mjs').then(({ loadUdxTransport }) => loadUdxTransport()).then(console.log)";
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { cwd: folder.path, encoding: 'utf8' });
    return stdout.trim() + stderr.trim();
  } finally {
    await folder.close();
  }
};

it('loadUdxTransport returns null when udx-native is not installed', async () => {
  expect(await loadIn(() => {})).toBe('null');
});

it('loadUdxTransport returns null when udx-native cannot be loaded', async () => {
  const breakIt = (folder: string): void => {
    mkdirSync(join(folder, 'node_modules/udx-native'), { recursive: true });
    writeFileSync(join(folder, 'node_modules/udx-native/index.js'), "throw new Error('no build for this machine');");
  };
  expect(await loadIn(breakIt)).toBe('null');
});
