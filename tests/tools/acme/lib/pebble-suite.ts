// The suite of packages/certificates with a new pebble for each test and a separate DNS server.
import { join } from 'node:path';
import {
  freePort,
  type Program,
  spawnProgram,
  type TemporaryDirectory,
  temporaryDirectory,
  waitForPort,
} from '@tunnel/testkit';
import { afterEach } from 'vitest';
import { acmeConformance } from '../../../../packages/certificates/src/acme/acme.conformance.ts';
import { BIN, startPebble } from './pebble.ts';

let programs: Program[] = [];
let folder: TemporaryDirectory;

afterEach(async () => {
  await Promise.all(programs.map((program) => program.close()));
  programs = [];
  await folder.close();
});

acmeConformance(async ({ httpPort, tlsPort }) => {
  folder = await temporaryDirectory();
  const dns = await freePort();
  const dnsManagement = await freePort();
  const dnsServer = `127.0.0.1:${dns}`;
  const dnsArgs = [
    ...['-defaultIPv4', '127.0.0.1', '-defaultIPv6', '', '-dnsserver', dnsServer],
    ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', '', '-management', `127.0.0.1:${dnsManagement}`],
  ];
  programs.push(await spawnProgram({ command: join(BIN, 'pebble-challtestsrv'), args: dnsArgs }));
  const pebble = await startPebble({ dnsServer, httpPort, tlsPort, folder: folder.path, programs });
  await waitForPort(dnsManagement);
  const tell = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${dnsManagement}/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  };
  return {
    ...pebble,
    profile: 'default',
    setTxt: (name, value) => tell('set-txt', { host: `${name}.`, value }),
    clearTxt: (name) => tell('clear-txt', { host: `${name}.` }),
  };
});
