// Tunnels a connection through a SOCKS5 proxy. The `socks` package does the handshake; name resolution, errors and early bytes are handled
// here.
import { lookup } from 'node:dns/promises';
import { isIP, type Socket } from 'node:net';
import { SocksClient } from 'socks';
import { CLIENT_LIMITS } from '../../limits.ts';
import type { ServerAddress } from '../../network/endpoint.ts';
import type { Proxy } from './proxy-address.ts';
import { proxyAuthFault, proxyRefused } from './proxy-faults.ts';

/**
 * Performs the SOCKS handshake on a socket to the proxy; afterwards the socket leads to `target`. Rejects with a Fault for an error reply,
 * with Node's error if the name cannot be resolved locally, or with an Error without a reply. The caller must destroy the socket.
 */
export const socksThrough = async (socket: Socket, proxy: Proxy, target: ServerAddress): Promise<void> => {
  const { credentials } = proxy;
  const client = new SocksClient({
    command: 'connect',
    destination: { host: await hostFor(proxy, target), port: target.port },
    proxy: {
      host: proxy.host,
      port: proxy.port,
      type: 5,
      ...(credentials === null ? {} : { userId: credentials.user.reveal(), password: credentials.password.reveal() }),
    },
    // Timeout of the `socks` package, longer than our own, so that ours fires first. The package's default of 30 s would use its own
    // timer.
    timeout: CLIENT_LIMITS.PROXY_DIAL_TIMEOUT_MS * 2,
  });
  await new Promise<void>((resolve, reject) => {
    client.once('error', ({ message }) => reject(failureOf(message, proxy, target)));
    client.once('established', () => void keepWhatFollows(socket).then(resolve));
    client.connect(socket);
  });
};

/** Returns the host to pass to the SOCKS proxy. Prefers IPv4, because networks behind a proxy mostly use IPv4. */
const hostFor = async ({ kind }: Proxy, { host }: ServerAddress): Promise<string> => {
  if (kind === 'socks5h' || isIP(host) !== 0) return host;
  const found = await lookup(host, { all: true });
  return (found.find(({ family }) => family === 4) ?? found[0])?.address ?? host;
};

/**
 * Catches bytes that arrived with the SOCKS reply and pushes them back for the next reader. The `socks` package emits these bytes as `data`
 * one turn later and resumes the socket, with no other listener attached.
 */
const keepWhatFollows = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const early: Buffer[] = [];
    const keep = (chunk: Buffer): void => void early.push(chunk);
    socket.on('data', keep);
    socket.pause();
    // Runs after the setImmediate of the `socks` package, which was scheduled when the handshake ended.
    setImmediate(() => {
      socket.off('data', keep).pause();
      if (early.length > 0) socket.unshift(Buffer.concat(early));
      // Undoes the pause without starting the flow, because the next reader does not call resume().
      socket.on('readable', ignore).off('readable', ignore);
      resolve();
    });
  });

const ignore = (): void => {};

/**
 * Recognizes errors by the package's messages, since the package has no error codes. The original error is dropped, because its options
 * contain the password.
 */
const failureOf = (message: string, proxy: Proxy, target: ServerAddress): Error => {
  if (/authentication failed|no accepted authentication type|unknown authentication type/i.test(message)) {
    return proxyAuthFault(proxy, []);
  }
  const [, reply] = /rejected connection - (\w+)$/i.exec(message) ?? [];
  if (reply !== undefined) return proxyRefused(proxy, target, REPLIES[reply] ?? 'unknown SOCKS error');
  if (/socket closed/i.test(message)) return new Error('the proxy closed the connection without a response');
  if (/invalid socks/i.test(message)) return new Error('the proxy does not speak SOCKS5');
  return new Error(message);
};

const REPLIES: Readonly<Record<string, string>> = {
  Failure: 'general proxy failure',
  NotAllowed: 'not allowed by the rules of the proxy',
  NetworkUnreachable: 'network unreachable',
  HostUnreachable: 'host unreachable',
  ConnectionRefused: 'connection refused',
  TTLExpired: 'the host did not respond in time',
  CommandNotSupported: 'command not supported',
  AddressNotSupported: 'address type not supported',
};
