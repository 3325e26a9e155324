// Flags for a server on the internet (`--public`) and for a local server with https (`--local-tls`). The flags set keys of server.toml
// and take precedence over the file.
import { domainToASCII } from 'node:url';
import { readDomainName } from '@tunnel/certificates/domains';
import { type Command, InvalidArgumentError, Option } from 'commander';

export interface PublicFlags {
  readonly public?: string;
  readonly acmeEmail?: string;
  readonly platformHost?: string;
  readonly localTls?: boolean;
}

/** Parses a host name. Returns the name in lower case as A-labels, without a trailing dot. */
export const hostName = (text: string): string => {
  const read = readDomainName(text, { toAscii: domainToASCII, operatorsHosts: [] });
  if (read.kind === 'refused') throw new InvalidArgumentError(`${read.fault.message}.`);
  if (read.domain.wildcard) throw new InvalidArgumentError('Leave out the `*.`.');
  if (read.domain.host.endsWith('.localhost')) throw new InvalidArgumentError('Names below localhost are not public.');
  return read.domain.host;
};

const EMAIL = /^[^\s@<>(),;:"]+@[^\s@<>(),;:"]+\.[^\s@.<>(),;:"]+$/;

/** Certificate authorities reject addresses with other characters, and with the parameters of a mailto URL after `?`. */
const CONTACT_CHARACTERS = /^[!->@-~]{1,254}$/;

export const emailAddress = (text: string): string => {
  if (EMAIL.test(text) && CONTACT_CHARACTERS.test(text)) return text;
  throw new InvalidArgumentError('Use one address, such as admin@example.com.');
};

const PUBLIC = '--public';

export const addPublicFlags = (command: Command): Command =>
  command
    .addOption(
      new Option(
        `${PUBLIC} <domain>`,
        'Serve the internet: tunnels below this domain on ports 80 and 443, with automatic certificates (you accept the terms of the certificate authority)',
      ).argParser(hostName),
    )
    .addOption(
      new Option('--acme-email <address>', 'With --public: contact address for the certificate authority').argParser(
        emailAddress,
      ),
    )
    .addOption(
      new Option('--platform-host <host>', 'With --public: host name of the dashboard (default: the domain)').argParser(
        hostName,
      ),
    )
    .addOption(
      new Option('--local-tls', 'Serve https for localhost names, with a CA of this machine').conflicts('public'),
    )
    .hook('preAction', (_, action) => {
      const { public: domain, acmeEmail, platformHost } = action.opts<PublicFlags>();
      if (domain !== undefined) return;
      const alone = acmeEmail === undefined ? platformHost && '--platform-host' : '--acme-email';
      if (alone !== undefined) action.error(`error: ${alone} needs ${PUBLIC} DOMAIN`);
    });

/** Returns the settings of the flags, which override single keys of the file and the environment. */
export const publicOverrides = ({ public: domain, acmeEmail, platformHost, localTls }: PublicFlags): object => ({
  ...(localTls === true ? { tls: { local_ca: true } } : {}),
  ...(domain === undefined
    ? {}
    : {
        server: { host: '0.0.0.0', api_host: '127.0.0.1', domain, http_port: 80, https_port: 443 },
        acme: { enabled: true, dns: 'builtin', ...(acmeEmail === undefined ? {} : { email: acmeEmail }) },
        platform: { public_url: `https://${platformHost ?? domain}` },
      }),
});
