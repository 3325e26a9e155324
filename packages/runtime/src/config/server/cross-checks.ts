// What one key of server.toml demands of another.
import type { Finding } from '../refuse.ts';
import type { ServerConfig } from './schema.ts';

const EMPTY = 'an empty string';

export const serverFindings = (config: ServerConfig): Finding[] => [
  ...tlsFindings(config),
  ...platformFindings(config),
  ...keyFindings(config),
];

const tlsFindings = ({ tls }: ServerConfig): Finding[] => {
  if ((tls.cert_path === '') === (tls.key_path === '')) return [];
  const [missing, given] =
    tls.cert_path === '' ? (['cert_path', 'key_path'] as const) : (['key_path', 'cert_path'] as const);
  return [{ path: ['tls', missing], expected: `given too when \`tls.${given}\` is`, got: EMPTY }];
};

const platformFindings = ({ platform, server }: ServerConfig): Finding[] => {
  const needed = (path: string[], value: string, why: string): Finding[] =>
    value === '' ? [{ path, expected: `given when ${why}`, got: EMPTY }] : [];
  return [
    ...(platform.mail.transport === 'smtp'
      ? needed(['platform', 'mail', 'smtp_url'], platform.mail.smtp_url.reveal(), '`platform.mail.transport` is "smtp"')
      : []),
    ...(platform.billing.processor === 'stripe'
      ? (['stripe_secret_key', 'stripe_webhook_secret'] as const).flatMap((key) =>
          needed(
            ['platform', 'billing', key],
            platform.billing[key].reveal(),
            '`platform.billing.processor` is "stripe"',
          ),
        )
      : []),
    ...(server.platform_url === ''
      ? []
      : needed(['server', 'platform_credential_file'], server.platform_credential_file, '`server.platform_url` is')),
  ];
};

/** One key cannot be two accounts. */
const keyFindings = ({ auth }: ServerConfig): Finding[] =>
  auth.keys.flatMap((key, index) => {
    const first = auth.keys.findIndex((other) => other.sha256 === key.sha256);
    if (first === index) return [];
    return [
      { path: ['auth', 'keys', index, 'sha256'], expected: 'a key of its own', got: `that of auth.keys[${first}]` },
    ];
  });
