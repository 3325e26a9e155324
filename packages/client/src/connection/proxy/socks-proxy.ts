// A way through a SOCKS5 proxy: the handshake is the `socks` package's; here are names, errors and the bytes behind it.
import { lookup } from 'node:dns/promises';
import { isIP, type Socket } from 'node:net';
import { SocksClient } from 'socks';
import { CLIENT_LIMITS } from '../../limits.ts';
import type { ServerAddress } from '../../network/endpoint.ts';
import type { Proxy } from './proxy-address.ts';
import { proxyAuthFault, proxyRefused } from './proxy-faults.ts';

/**
 * On a socket that leads to the proxy; from then on it leads to `target`. Rejects with a Fault for an answer, with node's error when the name is not known here,
 * with an Error where there is no answer. The socket is the caller's to destroy.
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
    // Ours ends it first; theirs would be 30 s, by a clock of its own.
    timeout: CLIENT_LIMITS.PROXY_DIAL_TIMEOUT_MS * 2,
  });
  await new Promise<void>((resolve, reject) => {
    client.once('error', ({ message }) => reject(failureOf(message, proxy, target)));
    client.once('established', () => void keepWhatFollows(socket).then(resolve));
    client.connect(socket);
  });
};

/** IPv4 first: that is what networks behind a proxy have. */
const hostFor = async ({ kind }: Proxy, { host }: ServerAddress): Promise<string> => {
  if (kind === 'socks5h' || isIP(host) !== 0) return host;
  const found = await lookup(host, { all: true });
  return (found.find(({ family }) => family === 4) ?? found[0])?.address ?? host;
};

/**
 * The package emits what came behind the answer once more as `data`, a turn later, and lets the socket flow: nobody listens by then but us, so it is
 * caught and put back for whoever reads next.
 */
const keepWhatFollows = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const early: Buffer[] = [];
    const keep = (chunk: Buffer): void => void early.push(chunk);
    socket.on('data', keep);
    socket.pause();
    // Its own comes first: it was set when the handshake was over.
    setImmediate(() => {
      socket.off('data', keep).pause();
      if (early.length > 0) socket.unshift(Buffer.concat(early));
      // Takes the pause back without letting anything flow: the next reader has no reason to call resume().
      socket.on('readable', ignore).off('readable', ignore);
      resolve();
    });
  });

const ignore = (): void => {};

/** By the package's words: it has no codes. Its error holds the options with the password, so it goes no further than here. */
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
