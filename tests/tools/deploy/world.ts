// Everything around the two machines of docs/deploy.md, in their network namespaces: the DNS provider, the mail server, the certificate
// authority, the teammate's web app, and people who open links. try.mjs calls these functions over the IPC channel.
import { Resolver } from 'node:dns';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { request } from 'node:https';
import type { LookupFunction } from 'node:net';
import { join } from 'node:path';
import { type Program, startDnsServer } from '@tunnel/testkit';
import { MailServer } from '../../system/mail-server.fixture.ts';
import { startPebble } from '../acme/lib/pebble.ts';

type Calls = Readonly<Record<string, (...args: never[]) => unknown>>;

interface Visited {
  readonly status: number;
  readonly text: string;
}

/** Finds addresses with the test DNS server. The system's resolver is that of this machine. */
const lookupAt = (dns: string): LookupFunction => {
  const resolver = new Resolver();
  resolver.setServers([dns]);
  return (name, { all }, done) =>
    resolver.resolve4(name, (error, addresses) => {
      const address = error === null ? (addresses[0] ?? '') : '';
      return all === true ? done(error, [{ address, family: 4 }]) : done(error, address, 4);
    });
};

/** Opens a page, or calls the API of a page, and validates the certificate with the root of the test authority. */
const visit = (lookup: LookupFunction, url: string, rootFile: string, body?: object): Promise<Visited> =>
  new Promise((resolve, reject) => {
    const sent = request(url, {
      lookup,
      ca: readFileSync(rootFile),
      agent: false,
      timeout: 10_000,
      method: body === undefined ? 'GET' : 'POST',
      headers: { accept: '*/*', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    });
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('timeout', () => sent.destroy(new Error('no response within 10 s')));
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });

interface OutsideOptions {
  readonly dns: string;
  readonly mail: string;
}

/** The internet: DNS, mail, and the computer of the teammate. */
export const startOutside = async ({ dns: dnsHost, mail: mailHost }: OutsideOptions): Promise<Calls> => {
  const dns = await startDnsServer({ host: dnsHost, port: 53 });
  const lookup = lookupAt(dnsHost);
  const mail = await MailServer.start({ use: (thing) => thing }, { host: mailHost, port: 587 });
  const app = createServer((_, response) => response.end('hello from the teammate'));
  await new Promise<void>((resolve) => app.listen(3000, '127.0.0.1', resolve));
  return {
    setRecord: (name: string, type: 'A' | 'AAAA', value: string) => dns.set(name, type, value),
    delegate: (zone: string, host: string) => dns.delegate(zone, { host, port: 53 }),
    mailedLink: (to: string, part: string) => mail.link(to, part),
    visit: (url: string, rootFile: string, body?: object) => visit(lookup, url, rootFile, body),
  };
};

interface AuthorityOptions {
  readonly dns: string;
  readonly folder: string;
}

/** The certificate authority, in the namespace of the server because its directory listens on loopback. */
export const startAuthority = async ({ dns, folder }: AuthorityOptions): Promise<Calls> => {
  const programs: Program[] = [];
  // This module is a bundle in another folder, where the testkit does not find its files. The working directory is the repository.
  const read = (name: string): string => readFileSync(`packages/testkit/fixtures/tls/${name}.pem`, 'utf8');
  const certificate = { cert: read('cert'), key: read('key') };
  const pebble = await startPebble({ dnsServer: `${dns}:53`, noncesRefused: 5, certificate, folder, programs });
  writeFileSync(join(folder, 'directory-ca.pem'), pebble.ca);
  writeFileSync(join(folder, 'root.pem'), await pebble.root());
  return { directory: () => pebble.directory };
};
