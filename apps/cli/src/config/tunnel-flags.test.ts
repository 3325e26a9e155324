import { optionOf, type TunnelCommand } from '@tunnel/tunnel-spec';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { commonTunnelFlags, entryOfFlags, tunnelOptions } from './tunnel-flags.ts';

const IO = { cwd: '/work', home: '/home/ann' };

const typed = (command: TunnelCommand, args: readonly string[]): object => {
  const parser = new Command('x').exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of tunnelOptions(command)) parser.addOption(option);
  return entryOfFlags(command, parser.parse(args, { from: 'user' }).opts(), IO);
};

describe('flags of a tunnel command become keys of config.yml', () => {
  it.each<[TunnelCommand, string[], object]>([
    ['http', [], {}],
    ['http', ['--subdomain', 'shop', '--host-header', 'rewrite'], { subdomain: 'shop', host_header: 'rewrite' }],
    ['http', ['--no-capture', '--local-tls-no-verify'], { capture: false, local_tls_verify: false }],
    [
      'http',
      ['--health', 'http:/up', '--health-interval', '0.5'],
      { health_check: { type: 'http', path: '/up', interval_secs: 0.5 } },
    ],
    ['tcp', ['--health', 'tcp', '--health-any-status'], { health_check: { type: 'tcp', expect_2xx: false } }],
    ['tcp', ['--alert-webhook', 'http://a/'], { health_check: { alert_webhook: 'http://a/' } }],
    ['files', ['--spa'], { files: { spa: true } }],
    ['udp', ['--idle', '60', '--proxy-protocol', 'v2'], { idle_secs: 60, proxy_protocol: 'v2' }],
    [
      'http',
      ['--group-key-file', 'key', '--policy', '~/p.yml'],
      { group_key_file: '/work/key', policy: '/home/ann/p.yml' },
    ],
    [
      'http',
      ['--service', 'api=4000', '--service', 'b=10.0.0.1:5000'],
      { services: { api: '4000', b: '10.0.0.1:5000' } },
    ],
    [
      'p2p connect',
      ['--listen', '[::1]:15432', '--udp', '--no-direct'],
      { listen_host: '::1', listen_port: 15_432, p2p_service: 'udp', p2p_direct: false },
    ],
    ['p2p connect', ['--listen', '0'], { listen_port: 0 }],
    ['p2p publish', ['--allow', 'anyone', '--secret-env', 'S'], { p2p_allow: 'anyone', p2p_secret_env: 'S' }],
  ])('for %s with %j', (command, args, entry) => expect(typed(command, args)).toEqual(entry));

  it.each<[TunnelCommand, string[], string]>([
    ['tcp', ['--remote-port', '0'], 'Use 1-65535.'],
    ['tcp', ['--remote-port', '1e3'], 'Use 1-65535.'],
    ['udp', ['--idle', '4'], 'Use 5-3600.'],
    ['udp', ['--proxy-protocol', 'v1'], 'Allowed choices are v2.'],
    ['http', ['--health', 'https:/up'], 'Use tcp or http:/path.'],
    ['http', ['--health-interval', '0'], 'Use a number of seconds above 0, up to 86400.'],
    ['http', ['--health-timeout', '3601'], 'Use a number of seconds above 0, up to 3600.'],
    ['http', ['--service', 'api'], "'api' is not a service."],
    ['http', ['--service', 'a=1', '--service', 'a=2'], '--service names a twice.'],
    ['p2p connect', ['--listen', '65536'], 'Use 0-65535 or host:port.'],
    ['p2p connect', [], "required option '--listen <[host:]port>' not specified"],
    ['udp', ['--subdomain', 'a'], "unknown option '--subdomain'"],
    ['files', ['--local-host', 'a'], "unknown option '--local-host'"],
  ])('for %s, and %j is refused', (command, args, words) => expect(() => typed(command, args)).toThrow(words));
});

it('no flag takes a secret as its value', () => {
  for (const key of ['group_key', 'p2p_secret'] as const) expect(optionOf(key).flag).toBeUndefined();
});

it('the common flags of a command are a subset of its flags', () => {
  for (const command of ['http', 'files', 'tcp', 'tls', 'udp', 'p2p publish', 'p2p connect'] as const) {
    const flags = tunnelOptions(command).map(({ long }) => long);
    expect(flags).toEqual(expect.arrayContaining(commonTunnelFlags(command)));
    expect(commonTunnelFlags(command).length).toBeGreaterThan(0);
  }
});
