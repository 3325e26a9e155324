// Checks both OpenAPI documents of a running stack with redocly and spectral: npm run try:openapi
// Installs both programs from the npm registry into .cache/openapi. If the registry cannot be reached, the script prints a message and
// ends.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const HERE = join(ROOT, 'tests/tools/openapi');
const FOLDER = join(ROOT, '.cache/openapi');
const PACKAGES = { '@redocly/cli': '2.77.0', '@stoplight/spectral-cli': '6.16.3' };
const START_TIMEOUT_MS = 120_000;

const installedVersion = (name) => {
  const file = join(FOLDER, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
};

const install = () => {
  const isReady = Object.entries(PACKAGES).every(([name, version]) => installedVersion(name) === version);
  if (isReady) return true;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, 'package.json'), JSON.stringify({ private: true, dependencies: PACKAGES }));
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  return spawnSync('npm', args, { cwd: FOLDER, stdio: 'inherit' }).status === 0;
};

const CONFIG = `
[platform]
port = 0
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
[load_balancing]
enabled = true
`;

/** Starts a stack on free ports in a temporary folder. */
const startStack = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-openapi-'));
  const config = join(folder, 'server.toml');
  const data = join(folder, 'data');
  writeFileSync(config, CONFIG);
  const args = ['apps/server/bin/tunnel-server.mjs', 'stack', '--config', config, '--data-dir', data];
  const server = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const stop = async () => {
    if (server.exitCode === null && server.kill('SIGTERM')) await once(server, 'exit');
    rmSync(folder, { recursive: true, force: true });
  };
  const began = Date.now();
  while (!existsSync(join(data, 'run.json'))) {
    if (server.exitCode !== null || Date.now() - began > START_TIMEOUT_MS) {
      await stop();
      throw new Error('the stack did not start');
    }
    await pause(100);
  }
  return { run: JSON.parse(readFileSync(join(data, 'run.json'), 'utf8')), stop };
};

const saveDocuments = async () => {
  const { run, stop } = await startStack();
  try {
    const urls = { platform: `${run.platform_url}/openapi.json`, edge: `${run.api_url}/api/openapi.json` };
    const files = [];
    for (const [name, url] of Object.entries(urls)) {
      const file = join(FOLDER, `${name}.json`);
      writeFileSync(file, JSON.stringify(await (await fetch(url)).json(), null, 2));
      files.push(file);
    }
    return files;
  } finally {
    await stop();
  }
};

const PROGRAMS = [
  { name: 'redocly', args: (file) => ['lint', file, '--config', join(HERE, 'redocly.yaml')] },
  {
    name: 'spectral',
    args: (file) => ['lint', file, '--ruleset', join(HERE, 'spectral.yaml'), '--fail-severity=warn'],
  },
];

const check = (file) =>
  PROGRAMS.map(({ name, args }) => {
    const program = join(FOLDER, 'node_modules/.bin', name);
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const { status } = spawnSync(program, args(file), { cwd: FOLDER, stdio: 'inherit', env });
    return status === 0;
  });

const results = [];
if (install()) for (const file of await saveDocuments()) results.push(...check(file));
else console.log('skipped: redocly and spectral could not be installed from the npm registry');
const failed = results.filter((ok) => !ok).length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
