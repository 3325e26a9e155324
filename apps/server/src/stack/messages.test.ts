import { loadServerConfig } from '@tunnel/config/server';
import { expect, it } from 'vitest';
import { toPlainConfig } from './messages.ts';

it('a part gets exactly the configuration of its parent, including secrets', () => {
  const config = loadServerConfig({
    env: { TUNNEL_SERVER__CONTROL_PORT: '0', TUNNEL_DATABASE__URL: 'postgres://tunnel:hunter2@db.test/tunnel' },
    defaults: { load_balancing: { enabled: true }, platform: { plans: { free: { tunnel_limit: 100 } } } },
    overrides: {
      data_dir: '/somewhere',
      auth: { admin_token: 'the-admin-token', keys: [{ account: 'alice', sha256: 'a'.repeat(64) }] },
      limits: { tcp_port_range: [30_000, 30_009] },
      platform: { mail: { transport: 'smtp', smtp_url: 'smtp://user:password@mail.test:587' } },
    },
  });
  const told = JSON.parse(JSON.stringify(toPlainConfig(config))) as object;
  const again = loadServerConfig({ env: {}, overrides: told });
  expect(again).toEqual(config);
  expect(toPlainConfig(again)).toEqual(toPlainConfig(config));
  expect(again.auth.admin_token.reveal()).toBe('the-admin-token');
  expect(again.database.url.reveal()).toBe('postgres://tunnel:hunter2@db.test/tunnel');
});
