// The platform API as people run it, with its embedded database, and an account to call it with.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { startServer } from '../lib/server.mjs';
import { signUp } from '../lib/sign-up.mjs';

/** Of a real account. */
const KEYS = 3;

// Everybody comes from one address here.
const CONFIG = `
[platform]
port = 0
[platform.limits]
auth_per_minute = 1000000
auth_per_account_per_minute = 1000000
[platform.mcp]
calls_per_minute = 1000000
`;

/** `root` is the checkout whose build runs. */
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
      // Its database has a process group of its own, and ends with it when it ends in order.
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

/** The yardstick: one route of the same framework on the same Node.js, with an answer of the same size. */
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
