import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ClientSpec, checkTunnelSpec } from '../tunnels/tunnel-spec.ts';
import { TargetGuard } from './target-guard.ts';

const ADDRESSES: Readonly<Record<string, string>> = {
  'inspector.localhost': '127.0.0.1',
  'lan.localhost': '192.0.2.7',
};

let asked: string[];
let clock: FakeClock;
let otherPorts: number[];
const guard = (knowsOthers = true): TargetGuard =>
  new TargetGuard({
    clients: knowsOthers
      ? {
          inspectorPorts: async () => otherPorts,
          isAgentSocket: (path) => path.endsWith('/run/4711.sock'),
        }
      : undefined,
    inspectorPort: () => 4301,
    edgePorts: () => [4041, 9090],
    clock,
    find: async (host) => {
      asked.push(host);
      const address = ADDRESSES[host] ?? host;
      if (address === 'nowhere.localhost') throw new Error('ENOTFOUND');
      return [{ address, family: 4 }];
    },
  });

beforeEach(() => {
  asked = [];
  clock = new FakeClock();
  otherPorts = [4302];
});

const tcp = (local_port: number, local_host?: string): ClientSpec => ({
  proto: 'tcp',
  local_port,
  ...(local_host === undefined ? {} : { local_host }),
});
const refusal = { code: 'CLIENT_TARGET_NOT_ALLOWED' };

describe('a tunnel target', () => {
  it.each([
    ['its own inspector', tcp(4301)],
    ['the inspector of another client', tcp(4302)],
    ['the REST of an edge on this machine', tcp(4041)],
    ['its metrics', tcp(9090, '::1')],
    ['an inspector as ::ffff:127.0.0.1', tcp(4301, '::ffff:127.0.0.1')],
    ['an inspector as 0.0.0.0', tcp(4301, '0.0.0.0')],
    ['an inspector by a name', tcp(4301, 'inspector.localhost')],
    ['an inspector as one of the services of a policy', { proto: 'http', local_port: 80, services: { a: 4302 } }],
    ['an inspector for peers', { proto: 'p2p', local_port: 4301 }],
  ] as const)('is refused: %s', async (_, spec) => {
    await expect(guard().check(spec)).rejects.toMatchObject(refusal);
  });

  it.each([
    ['a free port of the inspectors', tcp(4303)],
    ['the same port of another machine', tcp(4301, 'lan.localhost')],
    ['a name without an address', tcp(4301, 'nowhere.localhost')],
  ] as const)('is allowed: %s', async (_, spec) => {
    await expect(guard().check(spec)).resolves.toBeUndefined();
  });

  it('with another port, or of a udp tunnel, is allowed without a DNS lookup', () => {
    expect(
      [tcp(3000, 'inspector.localhost'), { ...tcp(4301), proto: 'udp' as const }].map((spec) => guard().check(spec)),
    ).toEqual([null, null]);
    expect(asked).toEqual([]);
  });

  it('is checked against the client’s own ports only when other clients are unknown', async () => {
    await expect(guard(false).check(tcp(4301))).rejects.toMatchObject(refusal);
    await expect(guard(false).check(tcp(4302))).resolves.toBeUndefined();
  });
});

describe('a Unix socket', () => {
  let folder: TemporaryDirectory;
  beforeEach(async () => {
    folder = await temporaryDirectory();
  });
  afterEach(() => folder.close());

  it('of a tunnel agent is refused, even through a symlink', async () => {
    const local_socket = join(folder.path, 'run', '4711.sock');
    await expect(guard().check({ proto: 'tcp', local_socket })).rejects.toMatchObject(refusal);
    mkdirSync(join(folder.path, 'run', '4711.sock'), { recursive: true });
    symlinkSync(local_socket, join(folder.path, 'app.sock'));
    const linked = { proto: 'http', local_socket: join(folder.path, 'app.sock') } as const;
    await expect(guard().check(linked)).rejects.toMatchObject(refusal);
    expect(guard().check({ proto: 'http', local_socket: join(folder.path, 'other.sock') })).toBeNull();
  });

  it('that controls the system is refused, even through a symlink, unless explicitly allowed', () => {
    const spec = { proto: 'tcp', local_socket: '/var/run/docker.sock' } as const;
    expect(() => checkTunnelSpec(spec)).toThrow(expect.objectContaining(refusal));
    expect(() => checkTunnelSpec(spec)).toThrow(/docker.*--yes-publish-socket.*`allow_control_socket: true`/);
    mkdirSync(join(folder.path, 'docker.sock'));
    symlinkSync(join(folder.path, 'docker.sock'), join(folder.path, 'app.sock'));
    const linked = { proto: 'http', local_socket: join(folder.path, 'app.sock') } as const;
    expect(() => checkTunnelSpec(linked)).toThrow(expect.objectContaining(refusal));
    // A container engine can start after the tunnel: the symlink target does not exist yet.
    symlinkSync('/var/run/podman/podman.sock', join(folder.path, 'later.sock'));
    symlinkSync(folder.path, join(folder.path, 'here'));
    for (const path of ['later.sock', 'here/later.sock']) {
      const later = { proto: 'tcp', local_socket: join(folder.path, path) } as const;
      expect(() => checkTunnelSpec(later)).toThrow(expect.objectContaining(refusal));
    }
    expect(() => checkTunnelSpec({ ...linked, allow_control_socket: true })).not.toThrow();
    expect(() => checkTunnelSpec({ ...spec, allow_control_socket: true })).not.toThrow();
    expect(() => checkTunnelSpec({ ...spec, local_socket: '/run/app.sock' })).not.toThrow();
  });
});

describe('a visitor of an open tunnel', () => {
  it('is refused if an inspector has started at the target since the tunnel opened', async () => {
    const spec = tcp(4303);
    const checks = guard();
    await checks.check(spec);
    await checks.checkVisit(spec);
    otherPorts = [4303];
    await clock.advance(1_000);
    await expect(checks.checkVisit(spec)).rejects.toMatchObject(refusal);
  });

  it('shares one target check with all visitors of the same second', async () => {
    const spec = tcp(4303, 'inspector.localhost');
    const checks = guard();
    await Promise.all([checks.checkVisit(spec), checks.checkVisit(spec)]);
    await clock.advance(999);
    await checks.checkVisit(spec);
    expect(asked).toEqual(['inspector.localhost']);
  });

  it('is checked again within a second, in one check shared with other visitors', async () => {
    const spec = tcp(4303, 'inspector.localhost');
    const checks = guard();
    await checks.checkVisit(spec);
    otherPorts = [4303];
    const later = [checks.checkLater(spec), checks.checkLater(spec)].map((look) =>
      expect(look).rejects.toMatchObject(refusal),
    );
    await clock.advance(1_000);
    await Promise.all(later);
    expect(asked).toHaveLength(2);
    otherPorts = [];
    const next = checks.checkLater(spec);
    await clock.advance(1_000);
    await expect(next).resolves.toBeUndefined();
    expect(asked).toHaveLength(3);
  });

  it.each([
    ['another port', tcp(8080)],
    ['UDP', { proto: 'udp', local_port: 4301 }],
    ['a socket', { proto: 'http', local_socket: '/run/4711.sock' }],
  ] as const)('needs no target check for %s', (_, spec) => {
    expect(guard().checkVisit(spec)).toBeNull();
  });
});
