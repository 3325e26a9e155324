// TLS termination: node:tls with nothing behind it, and our https port with a certificate for each of many names.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { CACHE_DIR, ROOT } from '../../scripts/lib/paths.mjs';
import { startServer } from '../lib/server.mjs';
import { CERTIFICATE, KEY } from './certificate.mjs';

const startTls = async ({ ground, folder, node, nodeArgs }, name, file, ...more) => {
  const dataDir = join(folder, name);
  mkdirSync(dataDir, { recursive: true });
  const args = ['--max-semi-space-size=4', ...(nodeArgs?.server ?? []), file, join(dataDir, 'run.json'), ...more];
  const server = await startServer({ name, ...ground.network.wrap(node, args), dataDir, cwd: folder });
  const port = Number(readFileSync(join(dataDir, 'run.json'), 'utf8'));
  return { address: { host: '127.0.0.1', port, tls: true }, processes: { server } };
};

export const bareTlsPath = {
  name: 'bare-tls',
  start: (settings) => startTls(settings, 'bare-tls', join(ROOT, 'bench/peers/bare-tls.mjs')),
};

/**
 * The https port with certificates by name. It runs without an edge, because a configuration file cannot set certificates by name. Its
 * sources are bundled like in the shipped build.
 */
export const tlsNamesPath = {
  name: 'ours-names',
  async start(settings) {
    const outfile = join(CACHE_DIR, 'bench/tls-names.mjs');
    mkdirSync(join(CACHE_DIR, 'bench'), { recursive: true });
    await build({
      absWorkingDir: ROOT,
      entryPoints: [join(ROOT, 'bench/load/tls-names.mjs')],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      conditions: ['source'],
      logLevel: 'warning',
      // Third-party packages load their parts with require.
      banner: {
        js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
      },
    });
    return startTls(settings, 'ours-names', outfile, CERTIFICATE, KEY);
  },
};
