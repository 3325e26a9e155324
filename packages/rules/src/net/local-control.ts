// Local targets that give control over a machine: loopback addresses, and the sockets of container engines and service managers.
import { classOfAddress } from './address-guard.ts';

/** Whether a connection to this address stays on the machine: loopback in either family, or the unspecified address, which systems take for loopback. */
export const reachesOwnMachine = (address: string): boolean => {
  const [plain = ''] = address.split('%');
  const found = classOfAddress(plain);
  return found === 'loopback' || found === 'unspecified';
};

/** By the last part of the path. */
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

/** Folders below a runtime folder: all sockets in them belong to the service. */
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

/** `/run`, `/var/run`, and the folder of one user in either. */
const RUNTIME_FOLDER = /^(?:\/var)?\/run\/(?:user\/\d+\/)?/;

/** Which service of the system listens at this absolute path, by its usual names; null: none that is known to give control over the machine. */
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
