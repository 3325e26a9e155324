// Checks at startup that the requirements of `[acme]` and `[platform] tls` outside the config file are met. The fault names the key;
// without the check, the first certificate order would fail instead.
import { X509Certificate } from 'node:crypto';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { type ConfiguredParts, hasHttpsPort, publicPorts, type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';

/** Checks the ACME and TLS settings. Throws a fault that names the wrong key. */
export const checkAcmeSettings = (config: ServerConfig, parts: ConfiguredParts): void => {
  if (parts === 'stack') checkPlatformPort(config);
  const { acme, server } = config;
  // An edge with a platform does not order certificates itself.
  if (!acme.enabled || (parts === 'edge' && server.platform_url !== '')) return;
  if (acme.ca_file !== '') checkAuthority(acme.ca_file);
  if (acme.storage_key_file !== '') checkKeyFile(acme.storage_key_file);
  if (acme.dns === 'exec') checkProgram(acme.dns_exec);
};

const wrong = (key: string, expected: string, got: string): Fault =>
  new Fault('CONFIG_WRONG_VALUE', { where: 'config', key, expected, got });

const reasonOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? (error as Error).message;

const checkAuthority = (file: string): void => {
  const expected = 'a readable file with PEM certificates';
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw wrong('acme.ca_file', expected, `${file} (${reasonOf(error)})`);
  }
  try {
    new X509Certificate(text);
  } catch {
    throw wrong('acme.ca_file', expected, `${file}, which has no certificate`);
  }
};

const ALL_READ = 0o004;
const GROUP_READS = 0o040;

/**
 * Whether only the server's user can read a file. A file of another user can also be readable for its group, because the group is then the
 * server's only way to read the file: root:tunnel with mode 0640, or a Secret in Kubernetes.
 */
export const isPrivateFile = (file: { readonly mode: number; readonly uid: number }, ownUid: number): boolean =>
  (file.mode & ALL_READ) === 0 && ((file.mode & GROUP_READS) === 0 || file.uid !== ownUid);

/** Checks that other users cannot read the key file. Whether the file exists and contains a key is checked when the file is opened. */
const checkKeyFile = (file: string): void => {
  const found = statSync(file, { throwIfNoEntry: false });
  const ownUid = process.getuid?.();
  if (found === undefined || ownUid === undefined || isPrivateFile(found, ownUid)) return;
  const shown = (found.mode & 0o777).toString(8).padStart(3, '0');
  throw wrong('acme.storage_key_file', 'a file readable only by its owner (chmod 600)', `${file} with mode ${shown}`);
};

/**
 * Checks that the program for DNS records is executable. A program name without a path is searched for in PATH only when the program
 * runs.
 */
const checkProgram = (program: string): void => {
  if (!program.includes('/')) return;
  try {
    accessSync(program, constants.X_OK);
    if (statSync(program).isDirectory()) throw new Error('it is a directory');
  } catch (error) {
    throw wrong('acme.dns_exec', 'an executable program', `${program} (${reasonOf(error)})`);
  }
};

/**
 * Checks that the edge and the platform do not use the same https port. Otherwise the dashboard's URL would lead to the edge, which does
 * not connect to a platform over TLS.
 */
const checkPlatformPort = ({ platform, server, acme, tls }: ServerConfig): void => {
  const { protocol, port } = new URL(platform.public_url);
  if (!platform.tls || protocol !== 'https:' || !hasHttpsPort({ acme, tls })) return;
  if ((port === '' ? 443 : Number(port)) !== publicPorts(server).https) return;
  const reason = 'false if `platform.public_url` uses `server.https_port`, because the edge then serves the platform';
  throw wrong('platform.tls', reason, 'true');
};
