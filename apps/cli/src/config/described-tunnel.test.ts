import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describingCommand } from '../commands/publish.ts';
import { makeTestIo } from '../io/io.fixture.ts';
import { type DescribedTunnel, describeTunnel, type Target, type TunnelFlags } from './described-tunnel.ts';
import type { KindName } from './kinds.ts';

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  mkdirSync(join(home.path, 'dist'));
  writeFileSync(join(home.path, 'key'), 'what members share\n');
});
afterEach(() => home.close());

const described = (kind: KindName, ...args: string[]): DescribedTunnel => {
  let tunnel: DescribedTunnel | null = null;
  const io = makeTestIo({ home: home.path, env: { KEY: 'by variable', EMPTY: '' } });
  describingCommand(kind)
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .action((target: Target, flags: TunnelFlags) => {
      tunnel = describeTunnel(kind, target, flags, io);
    })
    .parse(args, { from: 'user' });
  if (tunnel === null) throw new Error('not described');
  return tunnel;
};

describe('a tunnel described on the command line', () => {
  it('has the typed options, and a name from its command and target', () => {
    expect(described('http', 'localhost:3000', '--subdomain', 'shop').spec).toMatchObject({
      proto: 'http',
      name: 'http-3000',
      local_host: 'localhost',
      local_port: 3000,
      subdomain: 'shop',
    });
    expect(described('http', 'https://a:1').spec).toMatchObject({ proto: 'https', name: 'http-1' });
    expect(described('udp', '53', '--name', 'dns').spec).toMatchObject({ proto: 'udp', name: 'dns', local_port: 53 });
    expect(described('files', 'dist', '--spa').spec).toMatchObject({
      proto: 'http',
      name: 'files-dist',
      files: { dir: join(home.path, 'dist'), spa: true },
    });
  });

  it('becomes a config.yml entry without defaults, without keys of other protocols and without secrets', () => {
    const { spec, entry } = described(
      'tcp',
      '5432',
      '--group',
      'db',
      '--group-key-file',
      'key',
      '--local-host',
      '127.0.0.1',
    );
    expect(inspect(spec.group_key)).not.toContain('what members share');
    expect(entry()).toEqual({ proto: 'tcp', local_port: 5432, group: 'db', group_key_file: join(home.path, 'key') });
    expect(described('http', '1', '--host-header', 'keep', '--local-tls-no-verify').entry()).toEqual({
      proto: 'http',
      local_port: 1,
    });
    expect(described('http', '1', '--yes-publish-socket', '--no-capture').entry()).toEqual({
      proto: 'http',
      local_port: 1,
      capture: false,
    });
    expect(described('files', 'dist', '--listing').entry()).toEqual({
      proto: 'http',
      files: { dir: join(home.path, 'dist'), listing: true },
    });
    expect(described('http', 'unix:a.sock', '--yes-publish-socket').entry()).toEqual({
      proto: 'http',
      local_socket: join(home.path, 'a.sock'),
      allow_control_socket: true,
    });
  });

  it.each<[KindName, string[], string]>([
    ['http', ['1', '--subdomain', 'a', '--domain', 'a.example.com'], 'use --domain or --subdomain, not both.'],
    ['http', ['http://a', '--https'], 'use an https:// URL, or leave out --https.'],
    ['tcp', ['a:1', '--local-host', 'b'], 'two local hosts given, a and b. Leave out --local-host.'],
    ['tls', ['1'], 'a tls tunnel needs --subdomain or --domain'],
    ['tls', ['1', '--subdomain', 'a', '--health', 'http:/'], 'tls tunnels support only `--health tcp`.'],
    ['tcp', ['1', '--group', 'g'], '--group needs --group-key-file or --group-key-env.'],
    ['tcp', ['1', '--group-key-env', 'KEY'], 'a group key needs --group.'],
    ['tcp', ['1', '--group', 'g', '--group-key-env', 'KEY', '--group-key-file', 'key'], 'not both.'],
    ['tcp', ['1', '--group', 'g', '--group-key-env', 'EMPTY'], 'the variable EMPTY is not set (--group-key-env).'],
    ['tcp', ['1', '--group', 'g', '--group-key-file', 'none'], 'cannot read the group key from none: no such file'],
    ['tcp', ['1', '--health-interval', '5'], '--health-interval needs --health.'],
    ['tcp', ['1', '--health-timeout', '5'], '--health-timeout needs --health.'],
    ['tcp', ['1', '--health-max-failed', '5'], '--health-max-failed needs --health.'],
    ['tcp', ['1', '--health', 'tcp', '--health-any-status'], '--health-any-status needs --health http:/path.'],
    ['files', ['none'], 'does not exist'],
    ['files', ['key'], 'is not a folder.'],
  ])('is refused with the names of flags for %s %j', (kind, args, words) => {
    expect(() => described(kind, ...args)).toThrow(words);
  });
});
