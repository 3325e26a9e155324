// Runs docs/deploy.md and docs/proxy.md as written, on loopback: the files on the pages are valid, and a teammate who follows the pages gets a tunnel.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { claimPortBlock, type PortBlock, spawnProgram } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { node, SERVER_BIN } from '../repo/checkout.fixture.ts';
import { copyDatabase } from './database-template.fixture.ts';
import {
  commandOfPage,
  fileOfPage,
  hasNginx,
  type Loopback,
  makeLoopback,
  nginxAround,
  shellBlocksOfPage,
  startNginx,
} from './deploy-doc.fixture.ts';
import { type Harness } from './harness.fixture.ts';
import { endpointOf, startWeb } from './http-tunnels.fixture.ts';
import { askSecurely, TRUST } from './https-visitor.fixture.ts';
import { MailServer } from './mail-server.fixture.ts';
import { TLS_CERT, withoutOurEnvironment } from './stack.fixture.ts';
import { it } from './system-test.fixture.ts';
import { commandOf } from './tunnel-program.fixture.ts';

const CONFIG = '/etc/tunnel/server.toml';
const PASSWORD = 'correct horse battery';

describe('the files in docs/deploy.md and docs/proxy.md', () => {
  it('include a valid server.toml with a warning only about the payments named on the page', async ({ harness }) => {
    const ports = harness.use(await claimPortBlock());
    const loopback = await makeLoopback(harness, ports);
    const file = join(loopback.folder, 'server.toml');
    // The page's server.toml with other folders. The config check opens no port.
    writeFileSync(file, fileOfPage(CONFIG).replaceAll('/etc/tunnel', join(loopback.folder, 'etc')));
    const checked = await node([SERVER_BIN, 'check-config', '--config', file, '--json']);
    const { ok, warnings } = JSON.parse(checked.stdout) as { ok: boolean; warnings: { key: string }[] };
    expect([ok, warnings.map(({ key }) => key)]).toEqual([true, ['platform.billing.processor']]);
    const stripe = 'processor = "stripe"\nstripe_secret_key = "sk_test"\nstripe_webhook_secret = "whsec"';
    writeFileSync(file, `${readFileSync(file, 'utf8')}\n[platform.billing]\n${stripe}\n`);
    expect(await node([SERVER_BIN, 'check-config', '--config', file, '--strict'])).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  it('have only valid shell commands in their shell blocks', () => {
    for (const block of shellBlocksOfPage()) {
      expect(spawnSync('bash', ['-n'], { input: block, encoding: 'utf8' }).stderr, block).toBe('');
    }
  });
});

const startServer = async (harness: Harness, loopback: Loopback, ports: PortBlock): Promise<string> => {
  const config = loopback.write(CONFIG);
  await copyDatabase(join(loopback.folder, 'data'));
  const { control, api, metrics } = ports.fixed;
  const program = harness.use(
    await spawnProgram({
      command: process.execPath,
      args: [SERVER_BIN, 'stack', '--config', config],
      env: {
        ...withoutOurEnvironment(),
        TUNNEL_SERVER__CONTROL_PORT: String(control),
        TUNNEL_SERVER__API_PORT: String(api),
        TUNNEL_SERVER__METRICS_PORT: String(metrics),
        TUNNEL_LIMITS__TCP_PORT_RANGE: `[${ports.from}, ${ports.to}]`,
        TUNNEL_LIMITS__UDP_PORT_RANGE: `[${ports.from}, ${ports.to}]`,
      },
      cwd: loopback.folder,
    }),
  );
  harness.use({
    close: async () => {
      program.signal('SIGTERM');
      await program.waitForExit({ timeoutMs: 30_000 });
    },
  });
  await program.waitForLine(/is ready \(pid \d+\)/, { timeoutMs: 60_000 });
  return config;
};

interface Called {
  readonly status: number;
  readonly text: string;
}

/** Starts nginx, which terminates TLS for the browser's requests. */
const call = (url: string, body?: object): Promise<Called> =>
  new Promise((resolve, reject) => {
    const { port, pathname, search } = new URL(url);
    const sent = request({
      ...TRUST,
      hostname: '127.0.0.1',
      port,
      path: pathname + search,
      method: body === undefined ? 'GET' : 'POST',
      headers: { host: `localhost:${port}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      agent: false,
    });
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });

it.runIf(hasNginx)(
  'an operator who follows docs/deploy.md can invite by mail, and the invited teammate can open a tunnel',
  async ({ harness }) => {
    const mail = await MailServer.start(harness);
    const ports = harness.use(await claimPortBlock());
    const loopback = await makeLoopback(harness, ports, mail.port);
    await startServer(harness, loopback, ports);
    const nginx = nginxAround(loopback);
    const publicUrl = loopback.here('https://tunnel.example.com:8443');
    expect(spawnSync('nginx', ['-t', '-c', nginx, '-e', `${nginx}.log`]).status).toBe(0);
    await startNginx(harness, nginx, Number(new URL(publicUrl).port));
    expect((await call(`${publicUrl}/health`)).status).toBe(200);

    for (const command of ['create-user', 'invite']) {
      const [, ...args] = commandOfPage(`tunnel-server admin ${command} `).map((word) => loopback.here(word));
      const ended = await node([SERVER_BIN, ...args]);
      expect(ended.code, ended.stderr).toBe(0);
    }
    expect(await mail.link('you@example.com', '/app/reset-password?token=')).toContain(publicUrl);
    const invite = new URL(await mail.link('teammate@example.com', '/app/signup?invite=')).searchParams.get('invite');
    const teammate = { email: 'teammate@example.com', password: PASSWORD };
    expect((await call(`${publicUrl}/auth/register`, teammate)).status).toBe(403);
    const registered = await call(`${publicUrl}/auth/register`, { ...teammate, invite });
    // The invitation proves the address: no second mail.
    expect([registered.status, JSON.parse(registered.text)]).toMatchObject([201, { email_verified: true }]);

    const home = await harness.folder();
    const [, ...logIn] = commandOfPage('tunnel login ').map((word) => loopback.here(word));
    const flags = ['--email', teammate.email, '--password-stdin', '--ca-file', TLS_CERT];
    const login = commandOf([...logIn, ...flags]);
    const loggedIn = spawnSync(login.command, login.args, {
      input: PASSWORD,
      encoding: 'utf8',
      env: { ...withoutOurEnvironment(), HOME: home },
      cwd: home,
    });
    expect(loggedIn.status, loggedIn.stderr).toBe(0);

    const app = harness.use(await startWeb((_, response) => void response.end('of the teammate')));
    const [, ...publish] = commandOfPage('tunnel http 3000');
    const tunnel = await harness.run([...publish.map((word) => word.replace('3000', String(app.port))), '--json'], {
      home,
    });
    const { public_url: url } = await tunnel.ready();
    expect(url).toMatch(/^https:\/\/[\w-]+\.localhost:\d+$/);
    const answer = await askSecurely(endpointOf(url));
    expect([answer.status, String(answer.body)]).toEqual([200, 'of the teammate']);
  },
);
