// Where the REST of the edge is, and whether a key may go there.
import { isLoopback, parseServerAddress } from '@tunnel/client';
import { Fault } from '@tunnel/errors';

export interface ApiWish {
  /** --api, or `api_url` of config.yml. */
  readonly api: string | undefined;
  /** host:port of the control plane: the REST is on the same host unless somebody says else. */
  readonly server: string;
  /** false: clear text is allowed. */
  readonly tls: boolean | undefined;
}

export interface ApiAddress {
  /** Without a slash at its end. */
  readonly url: URL;
  /** Clear text goes to this machine, and nowhere else. */
  readonly loopbackOnly: boolean;
}

const DEFAULT_API_PORT = 4041;

export const apiAddress = ({ api, server, tls }: ApiWish): ApiAddress => {
  const url = api === undefined ? besideServer(server) : parseUrl(api);
  const loopbackOnly = url.protocol === 'http:' && tls !== false;
  if (loopbackOnly && !isLoopback(hostOf(url))) throw clearText(url.host);
  return { url, loopbackOnly };
};

/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

export const clearText = (host: string): Fault =>
  new Fault('CLIENT_USAGE', {
    reason: `the key would go to ${host} in clear: give an https:// address with --api, or --no-tls if the network between is yours`,
  });

const besideServer = (server: string): URL => {
  const { host } = parseServerAddress(server);
  return new URL(`http://${host.includes(':') ? `[${host}]` : host}:${DEFAULT_API_PORT}`);
};

const parseUrl = (text: string): URL => {
  const refuse = (why: string): Fault =>
    new Fault('CLIENT_USAGE', { reason: `--api ${why}, as http://127.0.0.1:4041` });
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refuse('must be an http or https URL');
  // A password in a URL would end in logs and on the screen; the key has ways of its own.
  if (url.username !== '' || url.password !== '') throw refuse('must be without a name and a password');
  return url;
};
