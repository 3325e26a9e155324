// Health check and setup of a server, with the executable.
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { claimPortBlock, spawnProgram, startDnsServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { SERVER_BIN } from '../repo/checkout.fixture.ts';
import type { Harness } from './harness.fixture.ts';
import { pidOfPart } from './kill-trial.fixture.ts';
import { MailServer } from './mail-server.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';
import { it } from './system-test.fixture.ts';

interface Ended {
  readonly code: number | null;
  readonly out: readonly string[];
  readonly err: readonly string[];
}

const server = async (harness: Harness, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> => {
  const program = await spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, ...args],
    env: { ...withoutOurEnvironment(), ...env },
    cwd: await harness.folder(),
  });
  const { code } = await program.waitForExit({ timeoutMs: 60_000 });
  await program.close();
  return { code, out: program.stdout, err: program.stderr };
};

describe('tunnel-server health', () => {
  const health = (harness: Harness, stack: Stack): Promise<Ended> =>
    server(harness, ['health', '--timeout', '3', ...stack.flags]);

  it('is ok while every part responds, names a stopped part, and is ok again when the part continues', async ({
    harness,
  }) => {
    const stack = await harness.stack({ command: 'stack' });
    expect(await health(harness, stack)).toEqual({ code: 0, out: ['ok'], err: [] });
    for (const part of ['edge', 'platform'] as const) {
      const pid = pidOfPart(stack.dataDir, part);
      process.kill(pid, 'SIGSTOP');
      try {
        const { code, out, err } = await health(harness, stack);
        expect([code, out, err]).toEqual([
          1,
          [],
          [expect.stringMatching(`^tunnel-server: ${part}: no response within 3 s`)],
        ]);
      } finally {
        process.kill(pid, 'SIGCONT');
      }
      await expect.poll(async () => (await health(harness, stack)).code, { timeout: 30_000 }).toBe(0);
    }
    await stack.stop();
    const stopped = await health(harness, stack);
    expect([stopped.code, stopped.err.length]).toEqual([1, 1]);
    expect(stopped.err[0]).toContain('no server is running');
  });

  it('checks an edge with TLS', async ({ harness }) => {
    const stack = await harness.stack({ command: 'edge', tls: true, server: 'host = "0.0.0.0"\napi_host = "0.0.0.0"' });
    expect(stack.run.api_url).toMatch(/^https:/);
    expect(await health(harness, stack)).toEqual({ code: 0, out: ['ok'], err: [] });
  });
});

describe('tunnel-server setup', () => {
  it('reports DNS records, taken ports and the mail server with a line each, and keeps an existing file', async ({
    harness,
  }) => {
    const dns = harness.use(await startDnsServer());
    dns.set('tunnel.test', 'A', '203.0.113.7');
    const mail = await MailServer.start(harness);
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    harness.use({ close: async () => void taken.close() });
    const { port } = taken.address() as AddressInfo;
    const file = join(await harness.folder(), 'etc', 'server.toml');
    const env = {
      TUNNEL_DNS__RESOLVERS: `["${dns.address}"]`,
      TUNNEL_SERVER__HOST: '127.0.0.1',
      TUNNEL_SERVER__API_PORT: String(port),
    };
    const smtp = `smtp://user:password@127.0.0.1:${mail.port}`;
    const flags = ['--public', 'tunnel.test', '--email', 'you@tunnel.test', '--smtp', smtp, '--out', file];
    const { code, out, err } = await server(harness, ['setup', ...flags], env);
    expect([code, err]).toEqual([0, []]);
    const lineOf = (text: string): string => out.find((line) => line.includes(text)) ?? `no line with ${text}`;
    expect(out[0]).toBe(`Wrote ${file}`);
    expect(lineOf('DNS record tunnel.test')).toContain('203.0.113.7');
    expect(lineOf('DNS record *.tunnel.test')).toMatch(/^ {2}fix .*is missing/);
    expect(lineOf('_acme-challenge.tunnel.test')).toMatch(/^ {2}fix .*with the value tunnel\.test$/);
    expect(lineOf(`port ${port}`)).toMatch(/^ {2}fix .*\[server\] api_port\) is already in use/);
    expect(lineOf('mail server')).toBe(`  ok    mail server 127.0.0.1:${mail.port} accepts the connection`);
    expect(lineOf('Next')).toMatch(/^Next, start the server/);

    writeFileSync(file, `${readFileSync(file, 'utf8')}# mine\n`);
    const again = await server(harness, ['setup', ...flags, '--no-checks']);
    expect([again.code, again.out, again.err.length]).toEqual([2, [], 1]);
    const wrong = ['--smtp', 'smtp://user:wrong@127.0.0.1:9'];
    const forced = await server(harness, ['setup', ...flags, ...wrong, '--force'], env);
    const [, copy = ''] = /kept the previous file as (.+)$/.exec(forced.out[0] ?? '') ?? [];
    expect(readFileSync(copy, 'utf8')).toContain('# mine');
    expect(forced.out.join('\n')).toMatch(/fix {3}mail server 127\.0\.0\.1:9: .*ECONNREFUSED/);
    expect(forced.out.join('\n')).not.toContain('wrong');

    const before = readFileSync(file, 'utf8');
    const checked = await server(harness, ['setup', '--recheck', '--out', file], env);
    expect([checked.code, checked.err, readFileSync(file, 'utf8')]).toEqual([1, [], before]);
    expect(checked.out.at(-1)).toBe(
      `  ${process.getuid?.() === 0 ? 'sudo ' : ''}tunnel-server setup --recheck --out ${file}`,
    );
    dns.set('*.tunnel.test', 'A', '203.0.113.7');
    dns.set('_acme-challenge.tunnel.test', 'SOA', 'tunnel.test');
    const right = { ...env, TUNNEL_SERVER__API_PORT: '0', TUNNEL_PLATFORM__MAIL__SMTP_URL: smtp };
    const fine = await server(harness, ['setup', '--recheck', '--out', file], right);
    expect([fine.code, fine.err, fine.out.join('\n')]).toEqual([0, [], expect.not.stringContaining('--recheck')]);
    expect((await server(harness, ['setup', '--recheck', '--force', '--out', file])).code).toBe(2);
  });

  it('--recheck beside the running server accepts the ports that the server has opened', async ({ harness }) => {
    const stack = await harness.stack({ command: 'edge', fixedPorts: true });
    const file = join(await harness.folder(), 'server.toml');
    const { control = '', metrics_url: metrics = '' } = stack.run as { control?: string; metrics_url?: string };
    const [controlPort = '', metricsPort = ''] = [control, metrics].map(
      (text) => /:(\d+)(?:\/|$)/.exec(text)?.[1] ?? '',
    );
    const keys = `control_port = ${controlPort}\nmetrics_port = ${metricsPort}\nhttp_port = 0\napi_port = 0`;
    writeFileSync(file, `data_dir = "${stack.dataDir}"\n[server]\n${keys}\n[platform]\nport = 0\n`);
    const { code, out } = await server(harness, ['setup', '--recheck', '--out', file]);
    expect([code, out.join('\n')]).toEqual([
      0,
      expect.stringContaining(`  ok    ports of the running server: ${controlPort}, ${metricsPort}\n`),
    ]);
  });

  it('the written file starts an edge', async ({ harness }) => {
    const ports = harness.use(await claimPortBlock());
    const folder = await harness.folder();
    const file = join(folder, 'server.toml');
    expect((await server(harness, ['setup', '--out', file, '--no-checks'])).code).toBe(0);
    const range = `[${ports.from}, ${ports.to}]`;
    const edge = harness.use(
      await spawnProgram({
        command: process.execPath,
        args: [SERVER_BIN, 'edge', '--config', file, '--data-dir', join(folder, 'data')],
        env: {
          ...withoutOurEnvironment(),
          TUNNEL_SERVER__CONTROL_PORT: '0',
          TUNNEL_SERVER__API_PORT: '0',
          TUNNEL_SERVER__METRICS_PORT: '0',
          TUNNEL_SERVER__HTTP_PORT: '0',
          TUNNEL_LIMITS__TCP_PORT_RANGE: range,
          TUNNEL_LIMITS__UDP_PORT_RANGE: range,
        },
        cwd: folder,
      }),
    );
    await edge.waitForLine(/is ready \(pid \d+\)/, { timeoutMs: 60_000 });
    edge.signal('SIGTERM');
    expect((await edge.waitForExit({ timeoutMs: 30_000 })).code).toBe(0);
  });
});

describe('tunnel-server service', () => {
  it('exits with 2 and one line without systemd, and --print changes nothing', async ({ harness }) => {
    const bin = await harness.folder();
    for (const action of ['install', 'uninstall', 'status']) {
      const { code, out, err } = await server(harness, ['service', action], { PATH: bin });
      expect([code, out, err.length]).toEqual([2, [], 1]);
      expect(err[0]).toContain('systemd is not installed: systemctl was not found');
    }
    const printed = await server(harness, ['service', 'install', '--print'], { PATH: bin });
    expect(printed.code).toBe(0);
    expect(printed.out).toContain('Type=notify');
    expect(printed.out).toContain('User=tunnel');
  });
});
