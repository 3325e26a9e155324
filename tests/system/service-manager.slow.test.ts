// Tests of server and client under a service manager: the programs report readiness, reloads and stops, and send signs of life.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from './in-process.fixture.ts';
import { canHearNotifications, ServiceManager } from './service-manager.fixture.ts';
import { commandOf } from './tunnel-program.fixture.ts';

describe.runIf(canHearNotifications)('a service manager', () => {
  it('is notified by tunnel-server when it is ready, alive and stopping, and by no other process', async ({
    harness,
  }) => {
    const manager = await ServiceManager.listen(harness);
    const stack = await harness.stack({ command: 'stack', programs: true, env: manager.env });
    await eventually(() => expect(manager.told).toEqual(['READY=1']));
    await eventually(() => expect(manager.signsOfLife).toBeGreaterThan(1));
    await stack.stop();
    // The parts and the database of the stack send no notifications.
    expect(manager.told).toEqual(['READY=1', 'STOPPING=1']);
  });

  it('is notified by the client when its tunnels are open, around a reload, and at its end', async ({ harness }) => {
    const manager = await ServiceManager.listen(harness);
    const stack = await harness.stack();
    const home = await harness.folder();
    const config = join(home, '.tunnel', 'config.yml');
    const text = `server: ${stack.control}\nauth_token_file: ${stack.tokenFile}\ntunnels:\n  a: { proto: tcp, local_port: 9 }\n`;
    mkdirSync(join(home, '.tunnel'));
    writeFileSync(config, text);
    const tunnel = await harness.run(['start', '--json'], { home, env: manager.env });
    await tunnel.ready();
    await eventually(() => expect(manager.told).toEqual(['READY=1']));
    writeFileSync(config, `${text}  b: { proto: tcp, local_port: 9 }\n`);
    tunnel.signal('SIGHUP');
    await tunnel.waitFor('reloaded');
    const reload = [expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/), 'READY=1'];
    await eventually(() => expect(manager.told).toEqual(['READY=1', ...reload]));
    await eventually(() => expect(manager.signsOfLife).toBeGreaterThan(0));
    tunnel.signal('SIGTERM');
    expect(await tunnel.exitCode()).toBe(0);
    expect(manager.told).toEqual(['READY=1', ...reload, 'STOPPING=1']);
  });
});

/** Uid without a line in /etc/passwd, as in a container that runs under a numeric uid. */
const NAMELESS_UID = 54_321;

describe.runIf(process.getuid?.() === 0)('the unit of a user without a name', () => {
  it.for(['--print', '--system'])('is printed all the same (%s)', (flag) => {
    const { command, args } = commandOf(['service', 'install', '--print', flag, '--config', '/etc/tunnel/config.yml']);
    const { status, stdout, stderr } = spawnSync(command, args, {
      uid: NAMELESS_UID,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: '/' },
      cwd: '/',
    });
    expect(stderr).toBe('');
    expect(stdout).toContain('start --config /etc/tunnel/config.yml');
    expect(status).toBe(0);
  });
});
