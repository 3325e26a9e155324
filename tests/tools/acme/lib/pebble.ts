// Starts pebble, the ACME test authority, in strict mode with a separate configuration.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@tunnel/runtime';
import { freePort, type Program, spawnProgram, testCertificate, waitForPort } from '@tunnel/testkit';
import { createAcmeHttp } from '../../../../packages/certificates/src/acme/client/acme-http.ts';

export const BIN = process.env['PEBBLE_BIN'] ?? '.cache/acme/v2.10.1';

export interface PebbleOptions {
  /** DNS server that pebble queries for names. */
  readonly dnsServer: string;
  /** Port at which pebble validates http-01; `tlsPort` is the port for tls-alpn-01. */
  readonly httpPort?: number;
  readonly tlsPort?: number;
  /** Percentage of nonces that pebble rejects; 50 by default. */
  readonly noncesRefused?: number;
  /** Certificate of the directory, for localhost. Default: the certificate of the testkit. */
  readonly certificate?: { readonly cert: string; readonly key: string };
  readonly folder: string;
  /** Receives the started program. The caller stops it. */
  readonly programs: Program[];
}

export interface Pebble {
  readonly directory: string;
  readonly ca: string;
  readonly root: () => Promise<string>;
}

export const startPebble = async ({
  dnsServer,
  httpPort = 80,
  tlsPort = 443,
  noncesRefused = 50,
  certificate: { cert, key } = testCertificate(),
  folder,
  programs,
}: PebbleOptions): Promise<Pebble> => {
  const inFolder = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const port = await freePort();
  const management = await freePort();
  const config = inFolder(
    'pebble.json',
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: inFolder('pebble-cert.pem', cert),
        privateKey: inFolder('pebble-key.pem', key),
        httpPort,
        tlsPort,
        ocspResponderURL: '',
        externalAccountBindingRequired: false,
        profiles: { default: { description: 'the one there is', validityPeriod: 7_776_000 } },
      },
    }),
  );
  const env = {
    PEBBLE_VA_NOSLEEP: '1',
    PEBBLE_WFE_NONCEREJECT: `${noncesRefused}`,
    PEBBLE_AUTHZREUSE: process.env['PEBBLE_AUTHZREUSE'] ?? '0',
  };
  const args = ['-strict', '-config', config, '-dnsserver', dnsServer];
  programs.push(await spawnProgram({ command: join(BIN, 'pebble'), args, env }));
  for (const opened of [port, management]) await waitForPort(opened);
  const http = createAcmeHttp({ clock: systemClock, ca: cert });
  const root = async (): Promise<string> => (await http(`https://localhost:${management}/roots/0`, null, {})).text;
  return { directory: `https://localhost:${port}/dir`, ca: cert, root };
};
