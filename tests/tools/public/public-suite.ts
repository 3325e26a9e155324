// A public installation with a single command, and everything over TLS: dashboard, control port and a tunnel, validated with the root of
// the test authority.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { eventually, type Program, spawnProgram, startDnsServer, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { ROOT, SERVER_BIN } from '../../repo/checkout.fixture.ts';
import { startPebble } from '../acme/lib/pebble.ts';

const ADDRESS = process.env['PUBLIC_ADDRESS'] ?? '';
const DOMAIN = process.env['PUBLIC_DOMAIN'] ?? '';
const TUNNEL_BIN = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const SLOW = { timeoutMs: 120_000 };

const cleanUps: (() => Promise<unknown>)[] = [];
let said = (): readonly string[] => [];
afterEach(async ({ task }) => {
  // On failure, the server's output helps more than the visitor's view.
  if (task.result?.state === 'fail') process.stderr.write(`${said().join('\n')}\n`);
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const ask = (url: string, ca?: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestTls : requestPlain;
    const call = send(url, { agent: false, ...(ca === undefined ? {} : { ca }) }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    call.on('error', reject);
    call.end();
  });

it('a single command starts a public installation with TLS for the dashboard, the control port and tunnels', async () => {
  const folder = await temporaryDirectory();
  cleanUps.push(() => folder.close());
  const dns = await startDnsServer();
  cleanUps.push(() => dns.close());
  dns.set(DOMAIN, 'A', ADDRESS);
  dns.set(`*.${DOMAIN}`, 'A', ADDRESS);
  dns.delegate(`_acme-challenge.${DOMAIN}`, { host: ADDRESS, port: 53 });
  const programs: Program[] = [];
  cleanUps.push(() => Promise.all(programs.map((program) => program.close())));
  const pebble = await startPebble({ dnsServer: dns.address, noncesRefused: 5, folder: folder.path, programs });

  const caFile = join(folder.path, 'directory-ca.pem');
  writeFileSync(caFile, pebble.ca);
  const config = join(folder.path, 'server.toml');
  const acme = `[acme]\ndirectory = "${pebble.directory}"\nca_file = "${caFile}"\nprofile = "default"\n`;
  writeFileSync(config, `${acme}[dns]\nresolvers = ["${dns.address}"]\n`);
  const dataDir = join(folder.path, 'data');
  const flags = ['--public', DOMAIN, '--acme-email', 'admin@example.com', '--config', config, '--data-dir', dataDir];
  const server = await spawnProgram({ command: process.execPath, args: [SERVER_BIN, 'stack', ...flags] });
  said = () => [...server.stdout, ...server.stderr];
  cleanUps.push(async () => {
    server.signal('SIGTERM');
    await server.waitForExit({ timeoutMs: 60_000 });
  });
  await server.waitForLine(/is ready/, SLOW);
  await server.waitForLine(/_acme-challenge\.\S+ +NS .*found|DNS record found: _acme-challenge/, SLOW);
  expect(server.stdout.join('\n')).toContain(`dashboard    https://${DOMAIN}/app/`);
  const [, link = ''] = /^ {2}first account: (\S+)$/m.exec(server.stdout.join('\n')) ?? [];
  expect(link).toMatch(new RegExp(`^https://${DOMAIN}/app/signup\\?invite=[\\w-]{43}$`));
  expect(readFileSync(join(dataDir, 'first-account-link'), 'utf8')).toBe(`${link}\n`);
  const run = JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) as Record<string, string>;
  expect(run['https_url']).toBe('https://127.0.0.1:443');
  expect(run['dns']).toMatch(/:53$/);

  const root = await pebble.root();
  const rootFile = join(folder.path, 'root.pem');
  writeFileSync(rootFile, root);
  await eventually(async () => {
    const page = await ask(`https://${DOMAIN}/app/`, root);
    expect([page.status, page.headers['strict-transport-security']]).toEqual([200, 'max-age=31536000']);
  }, SLOW);
  const moved = await ask(`http://${DOMAIN}/app/`);
  expect([moved.status, moved.headers['location']]).toEqual([308, `https://${DOMAIN}/app/`]);

  const service = createServer((_, response) => response.end('hello from home'));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => new Promise((resolve) => service.close(resolve)));
  const { port } = service.address() as AddressInfo;
  const token = ['--token-file', join(dataDir, 'admin-token')];
  for (const [name, control] of [
    ['shop', 443],
    ['other', 4040],
  ] as const) {
    const at = ['--subdomain', name, '--server', `${DOMAIN}:${control}`, '--ca-file', rootFile, '--json'];
    const args = [TUNNEL_BIN, 'http', `${port}`, ...at, ...token];
    programs.push(await spawnProgram({ command: process.execPath, args, env: { HOME: folder.path } }));
    await eventually(async () => {
      const { status, body } = await ask(`https://${name}.${DOMAIN}/`, root);
      expect([status, body]).toEqual([200, 'hello from home']);
    }, SLOW);
  }
});
