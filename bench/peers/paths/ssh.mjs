// OpenSSH, the tunnel that is available on every system: `ssh -R` with its fastest cipher.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../lib/free-ports.mjs';
import { HOST, startPeer, untilListening, writeFileIn } from '../peer-process.mjs';

const SERVER = '/usr/sbin/sshd';
const CIPHER = 'aes128-gcm@openssh.com';

function makeKey(folder, name) {
  const file = join(folder, name);
  const { status } = spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  if (status !== 0) throw new Error('ssh-keygen cannot make a key');
  return file;
}

const serverConfig = ({ control, hostKey, keys }) => `
Port ${control}
ListenAddress ${HOST}
HostKey ${hostKey}
AuthorizedKeysFile ${keys}
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
PidFile none
LogLevel ERROR
`;

const OPTIONS = [
  ...['BatchMode=yes', 'IdentitiesOnly=yes', 'StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null'],
  ...['ExitOnForwardFailure=yes', 'LogLevel=ERROR'],
].flatMap((option) => ['-o', option]);

export const sshTunnel = {
  name: 'ssh',
  protocol: 'tcp',
  carrier: 'SSH',
  programs: [],
  idleMax: 500,
  note: 'measured with 500 idle connections, because ssh scans its channels for every connection and 5,000 take minutes',
  missing: () => (existsSync(SERVER) ? null : 'sshd is not installed (Debian: apt install openssh-server)'),
  async start({ ground, folder }) {
    const control = await freePort();
    const port = await freePort();
    const hostKey = makeKey(folder, 'host');
    const key = makeKey(folder, 'visitor');
    const keys = join(folder, 'authorized_keys');
    copyFileSync(`${key}.pub`, keys);
    chmodSync(keys, 0o600);
    // sshd needs this folder for privilege separation.
    mkdirSync('/run/sshd', { recursive: true });
    const config = writeFileIn(folder, 'sshd_config', serverConfig({ control, hostKey, keys }));
    const edge = startPeer({ folder, command: SERVER, args: ['-D', '-e', '-f', config] });
    await untilListening(control, edge);
    const remote = `${HOST}:${port}:${HOST}:${ground.originPort}`;
    const args = [
      ...['-F', 'none', '-N', '-T', '-p', String(control), '-i', key, '-c', CIPHER, ...OPTIONS],
      ...['-R', remote, `root@${HOST}`],
    ];
    const client = startPeer({ folder, command: 'ssh', args });
    return { address: { host: HOST, port }, processes: { edge, client } };
  },
};
