import { describe, expect, it } from 'vitest';
import { controlSocketService, reachesOwnMachine } from './local-control.ts';

describe('an address', () => {
  it.each([
    '127.0.0.1',
    '127.8.9.10',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0.0.0.0',
    '::',
    '::1%lo',
    '::ffff:0.0.0.0',
  ])('%s reaches the local machine', (address) => {
    expect(reachesOwnMachine(address)).toBe(true);
  });

  it.each(['128.0.0.1', '10.0.0.1', '192.168.1.1', '::2', 'fe80::1', '::ffff:10.0.0.1', 'localhost', ''])(
    '%s does not point to the local machine',
    (address) => {
      expect(reachesOwnMachine(address)).toBe(false);
    },
  );
});

describe('a control socket', () => {
  it.each([
    ['/var/run/docker.sock', 'docker'],
    ['/run/user/1000/docker.sock', 'docker'],
    ['/home/ada/.docker/run/docker.sock', 'docker'],
    ['/run/containerd/containerd.sock', 'containerd'],
    ['/run/k3s/containerd/containerd.sock', 'containerd'],
    ['/run/user/1000/podman/podman.sock', 'podman'],
    ['/run/crio/crio.sock', 'crio'],
    ['/run/dbus/system_bus_socket', 'dbus'],
    ['/run/user/1000/bus', 'dbus'],
    ['/run/systemd/private', 'systemd'],
    ['/run/user/1000/systemd/private', 'systemd'],
    ['/var/run/libvirt/libvirt-sock', 'libvirt'],
    ['/run/snapd.socket', 'snapd'],
  ])('%s belongs to %s', (path, service) => {
    expect(controlSocketService(path)).toBe(service);
  });

  it.each([
    '/run/app.sock',
    '/srv/systemd/app.sock',
    '/run/user/1000/app/bus',
    '/tmp/bus',
    '/run/postgresql/.s.PGSQL.5432',
    '',
  ])('is not recognized at %s', (path) => {
    expect(controlSocketService(path)).toBeNull();
  });
});
