// The suite of packages/acme against pebble: a fresh one for each test, with its own DNS.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@tunnel/runtime';
import {
  freePort,
  type Program,
  spawnProgram,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
  waitForPort,
} from '@tunnel/testkit';
import { afterEach } from 'vitest';
import { acmeConformance } from '../../../../packages/acme/src/acme.conformance.ts';
import { createAcmeHttp } from '../../../../packages/acme/src/client/acme-http.ts';

const BIN = process.env['PEBBLE_BIN'] ?? '.cache/acme/v2.10.1';

let programs: Program[] = [];
let folder: TemporaryDirectory;

afterEach(async () => {
  await Promise.all(programs.map((program) => program.close()));
  programs = [];
  await folder.close();
});

acmeConformance(async ({ httpPort, tlsPort }) => {
  folder = await temporaryDirectory();
  const { cert, key } = testCertificate();
  const inFolder = (name: string, text: string): string => {
    const path = join(folder.path, name);
    writeFileSync(path, text);
    return path;
  };
  const [port, management, dns, dnsManagement] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const config = inFolder(
    'pebble.json',
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: inFolder('cert.pem', cert),
        privateKey: inFolder('key.pem', key),
        ...{ httpPort, tlsPort, ocspResponderURL: '', externalAccountBindingRequired: false },
        profiles: { default: { description: 'the one there is', validityPeriod: 7_776_000 } },
      },
    }),
  );
  const dnsArgs = [
    ...['-defaultIPv4', '127.0.0.1', '-defaultIPv6', '', '-dnsserver', `127.0.0.1:${dns}`],
    ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', '', '-management', `127.0.0.1:${dnsManagement}`],
  ];
  const env = {
    PEBBLE_VA_NOSLEEP: '1',
    PEBBLE_WFE_NONCEREJECT: '50',
    PEBBLE_AUTHZREUSE: process.env['PEBBLE_AUTHZREUSE'] ?? '0',
  };
  programs.push(await spawnProgram({ command: join(BIN, 'pebble-challtestsrv'), args: dnsArgs }));
  const args = ['-strict', '-config', config, '-dnsserver', `127.0.0.1:${dns}`];
  programs.push(await spawnProgram({ command: join(BIN, 'pebble'), args, env }));
  for (const opened of [port, management, dnsManagement]) await waitForPort(opened);
  const tell = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${dnsManagement}/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  };
  const http = createAcmeHttp({ clock: systemClock, ca: cert });
  return {
    directory: `https://localhost:${port}/dir`,
    ca: cert,
    profile: 'default',
    root: async () => (await http(`https://localhost:${management}/roots/0`, null, {})).text,
    setTxt: (name, value) => tell('set-txt', { host: `${name}.`, value }),
    clearTxt: (name) => tell('clear-txt', { host: `${name}.` }),
  };
});
