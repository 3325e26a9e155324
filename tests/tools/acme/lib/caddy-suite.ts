// Caddy behind a tls tunnel: pebble validates the host name in a handshake through the edge, which never has the private key.
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { eventually, freePort, type Program, spawnProgram, startDnsServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { TLS_CERT } from '../../../system/stack.fixture.ts';
import { it } from '../../../system/system-test.fixture.ts';
import { startPebble } from './pebble.ts';

const CADDY = process.env['CADDY_BIN'] ?? 'caddy';
const HOST = 'site.localhost.example';

const ask = (port: number, ca: string): Promise<{ readonly body: string; readonly issuer: string }> =>
  new Promise((resolve, reject) => {
    const trust = { ca, servername: HOST, headers: { host: HOST } };
    const call = request({ host: '127.0.0.1', port, ...trust, agent: false }, (response) => {
      const socket = response.socket as TLSSocket;
      const issuer = socket.getPeerX509Certificate()?.issuer ?? '';
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve({ body, issuer }));
    });
    call.on('error', reject).end();
  });

it('Caddy behind a tls tunnel gets its certificate by tls-alpn-01 and serves with it', async ({ harness }) => {
  const folder = await harness.folder();
  const dns = harness.use(await startDnsServer());
  dns.set(HOST, 'A', '127.0.0.1');
  const stack = await harness.stack({ tls: true, server: 'domain = "localhost.example"' });
  const run = JSON.parse(readFileSync(join(stack.dataDir, 'run.json'), 'utf8')) as { readonly https_url: string };
  const port = Number(new URL(run.https_url).port);
  const programs: Program[] = [];
  harness.use({
    close: async () => {
      await Promise.all(programs.map((program) => program.close()));
    },
  });
  const pebble = await startPebble({ dnsServer: dns.address, tlsPort: port, noncesRefused: 5, folder, programs });
  writeFileSync(join(folder, 'directory-ca.pem'), pebble.ca);
  const https = await freePort();
  const http = await freePort();
  const issuer = `issuer acme {\n      dir ${pebble.directory}\n      trusted_roots ${folder}/directory-ca.pem\n      disable_http_challenge\n    }`;
  const general = `admin off\n  https_port ${https}\n  http_port ${http}\n  storage file_system ${folder}/caddy`;
  writeFileSync(
    join(folder, 'Caddyfile'),
    `{\n  ${general}\n}\n${HOST} {\n  tls {\n    ${issuer}\n  }\n  respond "hello from caddy"\n}\n`,
  );
  const tunnel = await harness.tls(stack, https, { flags: ['--subdomain', 'site', '--tls', '--ca-file', TLS_CERT] });
  await tunnel.ready();
  const args = ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'];
  const caddy = await spawnProgram({ command: CADDY, args, env: { HOME: folder } });
  programs.push(caddy);
  await caddy.waitForLine(/certificate obtained successfully/, { timeoutMs: 60_000 });
  expect(caddy.stderr.join('\n')).toContain('tls-alpn-01');
  const root = await pebble.root();
  const { body, issuer: by } = await eventually(() => ask(port, root), { timeoutMs: 20_000 });
  expect([body, by]).toEqual(['hello from caddy', expect.stringContaining('Pebble')]);
});
