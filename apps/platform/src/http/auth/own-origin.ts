// Whether a request comes from a page of ours. A browser says so in Origin; programs send none. It matters where a cookie
// alone is enough, because tunnels may live on the same site as we do and SameSite does not keep them out.
import { isIPv4 } from 'node:net';
import type { ServerConfig } from '@tunnel/runtime';

type Settings = Pick<ServerConfig['platform'], 'host' | 'public_url'>;

/** `port`: the one that is listened on. */
export const ownOriginOf = (settings: Settings, port: () => number): ((origin: string | undefined) => boolean) => {
  const published = new URL(settings.public_url).origin;
  const local = isLoopback(settings.host);
  return (origin) => {
    if (origin === undefined || origin === published) return true;
    // Whoever tries it out at home types one or the other.
    return local && (origin === originOn('localhost', port()) || origin === originOn('127.0.0.1', port()));
  };
};

/** As browsers write it: without the port that http has anyway. */
const originOn = (host: string, port: number): string => new URL(`http://${host}:${port}`).origin;

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
