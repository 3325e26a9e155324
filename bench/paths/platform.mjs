// The platform API as users run it, with its embedded database, and an account for the calls.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { startServer } from '../lib/server.mjs';
import { signUp } from '../lib/sign-up.mjs';

/** Number of keys of a typical account. */
const KEYS = 3;

// High limits, because all requests come from the same address.
const CONFIG = `
[platform]
port = 0
[platform.limits]
auth_per_minute = 1000000
auth_per_account_per_minute = 1000000
[platform.mcp]
calls_per_minute = 1000000
`;

/** The platform path. `root` is the checkout with the build to run. */
export const platformPath = ({ name, root = ROOT }) => ({
  name,
  async start({ ground, folder, node, nodeArgs }) {
    mkdirSync(folder, { recursive: true });
    const config = join(folder, 'server.toml');
    const dataDir = join(folder, 'data');
    writeFileSync(config, CONFIG);
    const args = [
      ...['--max-semi-space-size=4', ...(nodeArgs?.server ?? [])],
      ...[join(root, 'apps/server/bin/tunnel-server.mjs'), 'platform', '--config', config, '--data-dir', dataDir],
    ];
    const server = await startServer({ name: 'platform', ...ground.network.wrap(node, args), dataDir, cwd: folder });
    const account = await signUp(dataDir);
    const keys = [];
    for (let key = 0; key < KEYS; key += 1) keys.push(await makeKey(account, `key ${key}`));
    const { hostname, port } = new URL(JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')).platform_url);
    return {
      address: { host: hostname, port: Number(port) },
      processes: { server },
      account: { ...account, api_key: keys[0] },
      // The database has a separate process group, and ends with the platform only if the platform ends in order.
      stopSignal: 'SIGTERM',
    };
  },
});

async function makeKey({ platform_url: url, access_token: token }, label) {
  const answer = await fetch(`${url}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ label }),
  });
  const text = await answer.text();
  if (answer.status !== 201) throw new Error(`POST /keys: ${answer.status} ${text}`);
  return JSON.parse(text).token;
}

/** The yardstick: a single route of the same framework on the same Node.js, with a response of the same size. */
export const bareHonoPath = {
  name: 'bare-hono',
  async start({ ground, node, folder }) {
    mkdirSync(folder, { recursive: true });
    const dataDir = join(folder, 'bare');
    mkdirSync(dataDir);
    const args = ['--max-semi-space-size=4', join(ROOT, 'bench/load/bare-hono.mjs'), dataDir];
    const command = ground.network.wrap(node, args);
    const server = await startServer({ name: 'bare-hono', ...command, dataDir, cwd: folder });
    const { port } = JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8'));
    return { address: { host: '127.0.0.1', port }, processes: { server }, account: { access_token: 'a-token' } };
  },
};
