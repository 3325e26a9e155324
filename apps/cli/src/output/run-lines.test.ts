import type { SessionFacts, Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { RunLines } from './run-lines.ts';

const tunnel = {
  name: 'web',
  protocol: 'http',
  tunnelId: 'tun_1',
  publicUrl: 'https://web.example',
  local: '127.0.0.1:3000',
  group: null,
  warnings: [],
  guard: null,
} as unknown as Tunnel;

const SESSION = {
  regionId: 'fra',
  regionName: 'Frankfurt',
  account: 'ada@example.com',
  plan: 'free',
  dashboardUrl: 'https://tunnels.example/app',
} as SessionFacts;

const start = (session: SessionFacts) => {
  const said = { out: '', err: '' };
  const output = new RunLines({
    stdout: { write: (text) => void (said.out += text) },
    stderr: { write: (text) => void (said.err += text) },
  });
  output.onStatus({ type: 'connecting', server: 'edge:4040' });
  output.onStatus({ type: 'connected', sessionId: 's', resumed: false });
  output.onClient({ session });
  output.onInspector('http://127.0.0.1:4300/');
  return { output, said };
};

it('the first open tunnel prints account, plan, region, inspector and dashboard', () => {
  const { output, said } = start(SESSION);
  expect(said.out).toBe('');
  output.onStatus({ type: 'tunnel-opened', tunnel });
  expect(said.out.split('\n')).toEqual([
    'connected as ada@example.com (free plan) in region fra',
    'inspector: http://127.0.0.1:4300/',
    'web: https://web.example -> 127.0.0.1:3000',
    'dashboard: https://tunnels.example/app/tunnels/tun_1',
    '',
  ]);
});

it('on an edge without a platform only the region is printed', () => {
  const { output, said } = start({ ...SESSION, regionName: null, account: null, plan: null, dashboardUrl: null });
  output.onStatus({ type: 'tunnel-opened', tunnel });
  expect(said.out.split('\n')[0]).toBe('connected in region fra');
  expect(said.out).not.toContain('dashboard');
});

it('a refused tunnel prints only its error, and a tunnel that is retried prints the connection first', () => {
  const fault = Fault.fromWire('TUNNEL_SUBDOMAIN_IN_USE', "subdomain 'web' is already in use");
  const refused = start(SESSION);
  refused.output.onStatus({ type: 'tunnel-error', tunnel, fault, final: true });
  refused.output.onStatus({ type: 'closing' });
  refused.output.onEnd(4, []);
  expect(refused.said.out).toBe('');
  expect(refused.said.err).toContain("web: subdomain 'web' is already in use");
  const retried = start(SESSION);
  retried.output.onStatus({ type: 'tunnel-error', tunnel, fault, final: false });
  expect(retried.said.out).toMatch(/^connected as/);
});
