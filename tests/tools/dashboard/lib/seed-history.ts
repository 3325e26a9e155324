// Writes past tunnels and usage of an account, and a public app, into the database of a running stack.
import { createLogger } from '@tunnel/runtime';
import { Database } from '../../../../apps/platform/src/db/database.ts';
import { embeddedUrl } from '../../../../apps/server/src/embedded-postgres/connection.ts';

const quiet = createLogger({ format: 'human', level: 'silent' });

export const seedHistory = async (dataDir: string, email: string, tunnels: number): Promise<void> => {
  const url = embeddedUrl(dataDir);
  if (url === null) throw new Error('the database of the stack does not run');
  const database = new Database({ url, logger: quiet, connections: 1 });
  try {
    await database.pool.query(TUNNELS, [email, tunnels]);
    await database.pool.query(DAYS, [email]);
    await database.pool.query(KEYS, [email]);
    await database.pool.query(REQUESTS);
    await database.pool.query(GRANTS, [email]);
  } finally {
    await database.close();
  }
};

/** Inserts tunnels of the last three months, each open for minutes or hours. */
const TUNNELS = `
insert into tunnel_log (user_id, region_id, tunnel_id, protocol, label, public_url, client_name, registered_at, unregistered_at, request_count, bytes_proxied)
select users.id, 'local', 'tun_' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 20), protocol, label,
  case protocol when 'tcp' then 'tcp://localhost:' || label else 'http://' || label || '.localhost:8000' end,
  (array['anns-laptop', 'build-server', 'raspberrypi'])[1 + n % 3],
  at, at + (1 + (n * 37) % 400) * interval '1 minute', (n * 7919) % 4800, ((n * 7919) % 4800)::bigint * (800 + (n * 331) % 40000)
from users, lateral (select n, now() - interval '2 hours' - n * interval '90 days' / greatest($2::int, 60) as at,
    case when n % 5 = 0 then 'tcp' else 'http' end as protocol,
    case when n % 5 = 0 then (20000 + n % 90)::text
      else (array['blog', 'api', 'preview', 'webhooks', 'docs', 'staging', 'demo'])[1 + n % 7] || case when n % 3 = 0 then '-' || n else '' end end as label
  from generate_series(1, $2::int) n) as rows
where email = $1`;

/** Inserts a month of growing usage with quiet weekends. Today keeps its real usage. */
const DAYS = `
insert into usage_daily (user_id, day, tunnels, requests, bytes)
select users.id, day, 2 + n % 4, requests, requests * (90000 + (n * 12370) % 140000)
from users, lateral (select n, day, ((400 + (30 - n) * 45 + (n * 613) % 420)
    * case when extract(isodow from day) > 5 then 0.35 else 1 end)::bigint as requests
  from (select n, (now() at time zone 'utc')::date - n as day from generate_series(1, 29) n) as days) as rows
where email = $1
on conflict do nothing`;

const KEYS = `
update api_keys set created_at = now() - interval '40 days'
where user_id = (select id from users where email = $1)`;

/** Public identity for the example app, because the real one is on this machine at a port that changes with each run. */
const APP = `client_id = 'https://assistant.example.com/oauth/client.json', client_host = 'assistant.example.com'`;

const REQUESTS = `update oauth_requests set ${APP}, redirect_uri = 'http://127.0.0.1:33418/callback'`;

const GRANTS = `
update oauth_grants set ${APP}, created_at = now() - interval '12 days'
where user_id = (select id from users where email = $1)`;
