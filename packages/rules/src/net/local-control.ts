// Local targets that give control over a machine: loopback addresses, and the sockets of container engines and service managers.
import { classOfAddress } from './address-guard.ts';

/**
 * Returns whether a connection to this address stays on the machine: loopback, or the unspecified address, which systems treat as loopback.
 */
export const reachesOwnMachine = (address: string): boolean => {
  const [plain = ''] = address.split('%');
  const found = classOfAddress(plain);
  return found === 'loopback' || found === 'unspecified';
};

/** Control services, such as Docker, by the last part of their socket's path. */
const SOCKET_NAMES: Readonly<Record<string, string>> = {
  'docker.sock': 'docker',
  'docker-cli.sock': 'docker',
  'containerd.sock': 'containerd',
  'containerd.sock.ttrpc': 'containerd',
  'podman.sock': 'podman',
  'crio.sock': 'crio',
  system_bus_socket: 'dbus',
  'snapd.socket': 'snapd',
  'snapd-snap.socket': 'snapd',
};

/** Folders below a runtime folder that contain only sockets of a control service such as containerd. */
const SERVICE_FOLDERS: readonly string[] = [
  'containerd',
  'podman',
  'crio',
  'dbus',
  'systemd',
  'libvirt',
  'snapd',
  'docker',
];

/** Pattern of runtime folders for sockets: `/run`, `/var/run`, and the per-user folder in either. */
const RUNTIME_FOLDER = /^(?:\/var)?\/run\/(?:user\/\d+\/)?/;

/**
 * Returns the system service that usually listens at this absolute path, or null if the path is not known to give control over the machine.
 */
export const controlSocketService = (path: string): string | null => {
  const parts = path.split('/').filter((part) => part !== '');
  const named = SOCKET_NAMES[parts.at(-1) ?? ''];
  if (named !== undefined) return named;
  const runtime = RUNTIME_FOLDER.exec(path)?.[0];
  if (runtime === undefined) return null;
  const [first = '', ...below] = path.slice(runtime.length).split('/');
  if (below.length === 0) return first === 'bus' ? 'dbus' : null;
  return SERVICE_FOLDERS.includes(first) ? first : null;
};
