// How the authority of this machine is trusted, in the words of the system that the server runs on. Whoever trusts it trusts it for localhost names alone.
import { join, relative } from 'node:path';
import type { ServerConfig } from '@tunnel/runtime';

export interface TrustFacts {
  readonly dataDir: string;
  readonly workingDir: string;
  readonly system: NodeJS.Platform;
}

/** Empty: there is none. */
export const trustNotes = (
  { tls }: Pick<ServerConfig, 'tls'>,
  { dataDir, workingDir, system }: TrustFacts,
): string[] => {
  if (!tls.local_ca) return [];
  const path = join(dataDir, 'local-ca', 'ca.pem');
  const short = relative(workingDir, path);
  const file = quoted(short.startsWith('..') ? path : short);
  return [
    `https for localhost names is signed by ${file}. Trust it once (it is good for localhost alone):`,
    ...(SYSTEMS[system] ?? SYSTEMS.linux).map((command) => `  ${command.replace('FILE', file)}`),
    `or for one program: curl --cacert ${file}, NODE_EXTRA_CA_CERTS=${file}`,
  ];
};

const LINUX = [
  'sudo cp FILE /usr/local/share/ca-certificates/tunnel-local.crt && sudo update-ca-certificates   (Debian, Ubuntu)',
  'sudo trust anchor FILE   (Fedora, Arch); Firefox and Chrome: import it under Certificates, Authorities',
];

const SYSTEMS: { readonly [system in NodeJS.Platform]?: readonly string[] } & { readonly linux: readonly string[] } = {
  linux: LINUX,
  darwin: ['sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain FILE'],
  win32: ['certutil -addstore -f ROOT FILE   (as administrator)'],
};

const quoted = (path: string): string => (/^[\w./@:+\\-]+$/.test(path) ? path : `"${path}"`);
