// Warns about settings in server.toml that are allowed but rarely intended. `check-config` and the server's start print one line per
// warning, with the key to set.
import { isLoopbackHost } from '@tunnel/rules/net';
import { isLoopbackConfig } from './loopback-config.ts';
import { platformHostAtEdge } from './platform-host.ts';
import type { ServerConfig } from './server-schema.ts';

export interface ConfigWarning {
  /** The key of server.toml that resolves the warning. */
  readonly key: string;
  readonly text: string;
}

/** The parts that a config file runs: edge and platform (`stack`), or one part only. */
export type ConfiguredParts = 'stack' | 'edge' | 'platform';

/** Guesses the parts from a config file: a file with a `platform_url` is for an edge, because the platform is elsewhere. */
export const likelyParts = ({ server }: ServerConfig): ConfiguredParts =>
  server.platform_url === '' ? 'stack' : 'edge';

export const configWarnings = (config: ServerConfig, parts: ConfiguredParts): ConfigWarning[] => [
  ...(parts === 'edge'
    ? []
    : [...dashboard(config, parts), ...publicUrl(config, parts), ...signUp(config), ...standIns(config, parts)]),
  ...(parts === 'platform' ? [] : [...authKeys(config, parts), ...groups(config)]),
];

/** Whether people on other machines can reach the server, through its listeners or through its public URL. */
export const isPublic = (config: ServerConfig, parts: ConfiguredParts): boolean =>
  listensPublicly(config, parts) || !isLoopbackHost(new URL(config.platform.public_url).hostname);

const listensPublicly = ({ server, platform }: ServerConfig, parts: ConfiguredParts): boolean =>
  (parts !== 'platform' && !isLoopbackHost(server.host)) || (parts !== 'edge' && !isLoopbackHost(platform.host));

const dashboard = (config: ServerConfig, parts: ConfiguredParts): ConfigWarning[] => {
  const { server, platform } = config;
  if (parts !== 'stack' || isLoopbackHost(server.host) || !isLoopbackHost(platform.host)) return [];
  if (hasProxy(platform) || platformHostAtEdge(config) !== null) return [];
  const text =
    'tunnels are public, but only this machine reaches the dashboard: set platform.host, or put a proxy in front and its https address into platform.public_url';
  return [{ key: 'platform.host', text }];
};

/** Whether a proxy serves the platform's public URL. In this case, the URL can have any port. */
const hasProxy = ({ public_url, trusted_proxies }: ServerConfig['platform']): boolean => {
  const { protocol, hostname } = new URL(public_url);
  return !isLoopbackHost(hostname) && (protocol === 'https:' || trusted_proxies.length > 0);
};

const publicUrl = (config: ServerConfig, parts: ConfiguredParts): ConfigWarning[] => {
  const { platform } = config;
  if (parts === 'stack' && platformHostAtEdge(config) !== null) return [];
  const key = 'platform.public_url';
  const { protocol, hostname, port } = new URL(platform.public_url);
  if (isLoopbackHost(hostname) && listensPublicly(config, parts)) {
    const text = `links in mails point to ${hostname}: set platform.public_url to the public address of the dashboard`;
    return [{ key, text }];
  }
  const named = Number(port === '' ? 80 : port);
  if (protocol === 'https:' || hasProxy(platform) || platform.port === 0 || named === platform.port) return [];
  const text = `links point to port ${named}, but the dashboard listens on port ${platform.port}: set platform.public_url = "http://${hostname}:${platform.port}"`;
  return [{ key, text }];
};

const signUp = (config: ServerConfig): ConfigWarning[] => {
  if (config.platform.sign_up !== 'open' || isLoopbackConfig(config)) return [];
  const text =
    'anyone can sign up and publish tunnels on your domain: set platform.sign_up = "invite" (invited people only) or "closed" (no sign-up)';
  return [{ key: 'platform.sign_up', text }];
};

/** Warns if a public server still uses the test substitutes for a mail server and a payment processor. */
const standIns = (config: ServerConfig, parts: ConfiguredParts): ConfigWarning[] => {
  if (!isPublic(config, parts)) return [];
  const { mail, billing } = config.platform;
  const warnings: ConfigWarning[] = [];
  if (mail.transport === 'file') {
    const text =
      'mail is written to files on this machine and not delivered: set platform.mail.transport = "smtp" and platform.mail.smtp_url';
    warnings.push({ key: 'platform.mail.transport', text });
  }
  if (billing.processor === 'simulator') {
    const text =
      'payments are in test mode, no real charges: set platform.billing.processor = "stripe" to charge (a public dashboard hides Billing until then)';
    warnings.push({ key: 'platform.billing.processor', text });
  }
  return warnings;
};

const authKeys = ({ auth, server }: ServerConfig, parts: ConfiguredParts): ConfigWarning[] => {
  if (auth.keys.length === 0 || (parts === 'edge' && server.platform_url === '')) return [];
  const text =
    'an edge with a platform ignores [[auth.keys]]: remove auth.keys, and create API keys with `tunnel login` or in the dashboard';
  return [{ key: 'auth.keys', text }];
};

const groups = ({ load_balancing }: ServerConfig): ConfigWarning[] => {
  if (load_balancing.enabled) return [];
  const text = 'groups are off, so every tunnel of a group gets a separate address: set load_balancing.enabled = true';
  return [{ key: 'load_balancing.enabled', text }];
};
