// Inserts rows in bulk: accounts, their tunnels of two years in random order, and their daily usage.

/** Rows per statement, few enough for every time limit. */
const AT_ONCE = 250_000;
/** One tunnel in this many is open. */
const OPEN_ONE_IN = 20_000;

const run = async (pool, text, values) => {
  const client = await pool.connect();
  try {
    await client.query('set statement_timeout = 0');
    return await client.query(text, values);
  } finally {
    client.release();
  }
};

export async function addAccounts(pool, count) {
  await run(pool, "insert into plans values ('free', 3, true, 0, 0) on conflict do nothing");
  const text =
    "insert into users (email, plan) select 'user-' || n || '@example.com', 'free' from generate_series(1, $1::int) n returning id";
  const { rows } = await run(pool, text, [count]);
  const ids = rows.map(({ id }) => id);
  const keys =
    "insert into api_keys (user_id, label, token_hash) select id, 'laptop', 'hash-' || id from unnest($1::uuid[]) id";
  await run(pool, keys, [ids]);
  return ids;
}

/** Inserts tunnels. Indexes are recreated afterwards, because updating them during millions of inserts would take hours. */
export async function addTunnels(pool, accounts, count) {
  if (accounts.length === 0) return;
  const restore = await withoutIndexes(pool, 'tunnel_log');
  for (let done = 0; done < count; done += AT_ONCE) {
    await run(
      pool,
      `insert into tunnel_log (user_id, region_id, tunnel_id, protocol, label, registered_at, unregistered_at, request_count, bytes_proxied)
       select ($1::uuid[])[1 + n % $2], 'local', 'tun_' || replace(gen_random_uuid()::text, '-', ''),
         case when n % 4 = 0 then 'tcp' else 'http' end, 'label-' || n, at,
         case when n % $5 = 0 then null else at + interval '1 hour' end, n % 1000, n * 100
       from (select n, now() - random() * interval '730 days' as at from generate_series($3::int, $4::int) n) as rows`,
      [accounts, accounts.length, done, Math.min(done + AT_ONCE, count) - 1, OPEN_ONE_IN],
    );
  }
  await restore();
  await run(pool, 'vacuum (analyze) tunnel_log');
}

export async function addDays(pool, accounts, days) {
  await run(
    pool,
    `insert into usage_daily (user_id, day, tunnels, requests, bytes)
     select account, (now() at time zone 'utc')::date - n, n, n * 10, n * 1000
     from unnest($1::uuid[]) account, generate_series(0, $2::int - 1) n`,
    [accounts, days],
  );
  for (const table of ['usage_daily', 'users', 'plans', 'api_keys']) await run(pool, `vacuum (analyze) ${table}`);
}

async function withoutIndexes(pool, table) {
  const constraints = await run(
    pool,
    `select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
     where conrelid = $1::regclass and contype in ('p', 'u')`,
    [table],
  );
  for (const { name } of constraints.rows) await run(pool, `alter table ${table} drop constraint ${name}`);
  const indexes = await run(
    pool,
    'select indexname as name, indexdef as definition from pg_indexes where tablename = $1',
    [table],
  );
  for (const { name } of indexes.rows) await run(pool, `drop index ${name}`);
  return async () => {
    for (const { name, definition } of constraints.rows) {
      await run(pool, `alter table ${table} add constraint ${name} ${definition}`);
    }
    for (const { definition } of indexes.rows) await run(pool, definition);
  };
}
