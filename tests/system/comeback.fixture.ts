// Clients with every kind of public endpoint at the same edge, and strangers that request the same endpoints.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@tunnel/client';
import { startEchoServer } from '@tunnel/testkit';
import type { Harness } from './harness.fixture.ts';
import { runHttp, startWeb } from './http-tunnels.fixture.ts';
import type { Stack, StackOptions } from './stack.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

const STRANGER_KEY = 'the key of another account';
export const CHOSEN_NAME = 'shop';
export const GROUP_NAME = 'pool';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export const startEdgeWithStranger = (harness: Harness, options: StackOptions = {}): Promise<Stack> =>
  harness.stack({
    ...options,
    fixedPorts: true,
    tables: `[load_balancing]\nenabled = true\n[[auth.keys]]\naccount = "stranger"\nsha256 = "${sha256(STRANGER_KEY)}"`,
  });

/**
 * Starts a client for each kind of tunnel: a chosen and a random name, a chosen and a random port, and two group members each at a name
 * and at a port.
 */
export const startClients = async (harness: Harness, stack: Stack): Promise<TunnelProgram[]> => {
  const echo = harness.use(await startEchoServer());
  const web = harness.use(await startWeb((_, response) => void response.end('well')));
  const keyFile = join(await harness.folder(), 'group-key');
  writeFileSync(keyFile, 'a key that all members share', { mode: 0o600 });
  const group = (name: string) => ['--group', name, '--group-key-file', keyFile];
  const quiet = ['--no-inspect'];
  const chosenPort = String(stack.tcpPorts.to);
  // The chosen port is opened first, because a random port could be the same.
  const onChosenPort = await harness.tcp(stack, echo.port, { flags: ['--name', 'c', '--remote-port', chosenPort] });
  await onChosenPort.ready();
  const programs = [
    onChosenPort,
    await runHttp(harness, stack, web.port, ['--name', 'a', '--subdomain', CHOSEN_NAME, ...quiet]),
    await runHttp(harness, stack, web.port, ['--name', 'b', ...quiet]),
    await harness.tcp(stack, echo.port, { flags: ['--name', 'd'] }),
    await runHttp(harness, stack, web.port, ['--name', 'e', ...group(GROUP_NAME), ...quiet]),
    await runHttp(harness, stack, web.port, ['--name', 'f', ...group(GROUP_NAME), ...quiet]),
    await harness.tcp(stack, echo.port, { flags: ['--name', 'g', ...group('db')] }),
  ];
  await programs[6]?.ready();
  programs.push(await harness.tcp(stack, echo.port, { flags: ['--name', 'h', ...group('db')] }));
  for (const program of programs) await program.ready();
  return programs;
};

/** Returns name, protocol and public endpoint of each tunnel, as listed by the edge. */
export const endpointsOf = async (stack: Stack): Promise<string[]> =>
  (await stack.tunnels()).map(({ name, protocol, label }) => `${name} ${protocol} ${label}`).sort();

/** Requests the endpoint with a new client. Returns the error code, or `opened` after the endpoint was released again. */
export const askFor = async (
  stack: Stack,
  endpoint: { readonly subdomain: string } | { readonly remotePort: number },
  token = STRANGER_KEY,
): Promise<string> => {
  const client = await connect({ server: stack.control, token });
  try {
    const tunnel = await client.open(
      'subdomain' in endpoint
        ? { protocol: 'http', localPort: 9, ...endpoint }
        : { protocol: 'tcp', localPort: 9, ...endpoint },
    );
    await tunnel.close();
    return 'opened';
  } catch (error) {
    return (error as { code: string }).code;
  } finally {
    await client.close();
  }
};

/** Requests each distinct endpoint of a list from `endpointsOf`, and returns the results of `askFor`. */
export const askForAll = async (stack: Stack, endpoints: readonly string[], token?: string): Promise<string[]> => {
  const distinct = [...new Set(endpoints.map((line) => line.slice(line.indexOf(' ') + 1)))];
  const codes: string[] = [];
  for (const line of distinct) {
    const [protocol, label = ''] = line.split(' ');
    codes.push(await askFor(stack, protocol === 'tcp' ? { remotePort: Number(label) } : { subdomain: label }, token));
  }
  return codes;
};
