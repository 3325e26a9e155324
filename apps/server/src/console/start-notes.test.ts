import { loadServerConfig } from '@tunnel/config/server';
import { describe, expect, it } from 'vitest';
import { parsePortRange, STACK_DEFAULTS, startNotes, trustNotes } from './start-notes.ts';

const configOf = (overrides: object, defaults: object = {}) => loadServerConfig({ env: {}, defaults, overrides });

it('a start without a config file prints no notes', () => {
  expect(startNotes(configOf({}, STACK_DEFAULTS), 'stack')).toEqual([]);
});

it('a public platform with open sign-up prints a warning with the key to change', () => {
  const platform = { public_url: 'https://tunnels.example.com', sign_up: 'open' };
  const notes = startNotes(configOf({ platform }), 'stack').filter((note) => note.includes('sign_up'));
  expect(notes).toEqual([expect.stringMatching(/^warning: anyone can sign up.*platform\.sign_up = "invite"/)]);
});

it('a start with a config file notes each difference from a start without a file once', () => {
  expect(startNotes(configOf({}), 'stack')).toEqual([
    expect.stringMatching(/^warning: groups are off.*load_balancing\.enabled = true$/),
    'note: platform.plans.free.tunnel_limit is 3 (100 without --config)',
  ]);
  expect(startNotes(configOf({ load_balancing: { enabled: true } }), 'stack')).toHaveLength(1);
  expect(startNotes(configOf({ load_balancing: { enabled: true } }), 'edge')).toEqual([]);
});

it("an edge warns when limits.udp_port_range overlaps the system's ephemeral ports", () => {
  const notesOf = (
    range: readonly [number, number],
    system: readonly [number, number] | null,
    parts = 'edge' as const,
  ) => startNotes(configOf({ ...STACK_DEFAULTS, limits: { udp_port_range: range } }), parts, system);
  const linux = [32_768, 60_999] as const;
  for (const range of [
    [30_000, 32_768],
    [60_999, 61_010],
    [40_000, 40_100],
    [1024, 65_535],
  ] as const) {
    expect(notesOf(range, linux)).toEqual([
      expect.stringMatching(`^warning: limits.udp_port_range \\(${range.join('-')}\\) overlaps .*\\(32768-60999, `),
    ]);
  }
  expect(notesOf([20_100, 32_767], linux)).toEqual([]);
  expect(notesOf([61_000, 61_100], linux)).toEqual([]);
  expect(notesOf([40_000, 40_100], null)).toEqual([]);
  const platform = startNotes(configOf({ limits: { udp_port_range: [40_000, 40_100] } }), 'platform', linux);
  expect(platform.join()).not.toContain('udp_port_range');
});

it("the system's port range is parsed only in the kernel's format", () => {
  expect(parsePortRange('32768\t60999\n')).toEqual([32_768, 60_999]);
  for (const odd of ['', '32768', 'a\tb', '1 2 3', '-1 5']) expect(parsePortRange(odd)).toBeNull();
});

const facts = { dataDir: '/srv/tunnel/data', workingDir: '/srv/tunnel', system: 'linux' as NodeJS.Platform };
const withAuthority = loadServerConfig({ env: {}, overrides: { tls: { local_ca: true } } });

describe('instructions to trust the local CA', () => {
  it('are omitted without a local CA', () => {
    expect(trustNotes(loadServerConfig({ env: {} }), facts)).toEqual([]);
  });

  it.each([
    ['linux', 'sudo cp data/local-ca/ca.pem /usr/local/share/ca-certificates/tunnel-local.crt'],
    ['darwin', 'sudo security add-trusted-cert -d -r trustRoot'],
    ['win32', 'certutil -addstore -f ROOT data/local-ca/ca.pem'],
    ['freebsd', 'sudo trust anchor data/local-ca/ca.pem'],
  ] as const)('name the CA file and the command for %s', (system, command) => {
    const notes = trustNotes(withAuthority, { ...facts, system }).join('\n');
    expect(notes).toContain(command);
    expect(notes).toContain('NODE_EXTRA_CA_CERTS=data/local-ca/ca.pem');
  });

  it('show the full path of a folder elsewhere, with quotes if it has spaces', () => {
    const elsewhere = { ...facts, workingDir: '/home/me', dataDir: '/srv/my data' };
    expect(trustNotes(withAuthority, elsewhere)[0]).toContain('"/srv/my data/local-ca/ca.pem"');
  });
});
