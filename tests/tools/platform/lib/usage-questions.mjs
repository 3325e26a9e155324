// Runs the API's queries with its services, and then explains each SQL statement with the same values.
import { listKeys } from '../../../../apps/platform/src/services/keys/keys.ts';
import { findTunnel, listTunnels } from '../../../../apps/platform/src/services/usage/tunnel-log.ts';
import { chartUsage, summarizeUsage } from '../../../../apps/platform/src/services/usage/usage-sums.ts';
import { systemClock } from '../../../../packages/runtime/src/index.ts';

/** Size of a small table, which PostgreSQL rightly reads completely, for example the table of plans. */
const SMALL_BYTES = 128 * 1024;
/** Number of measurements, of which the median counts. */
const TIMES = 5;

export const QUESTIONS = [
  { name: '/usage', ask: (context, actor) => summarizeUsage(context, actor) },
  { name: '/usage/chart?days=90', ask: (context, actor) => chartUsage(context, actor, 90) },
  { name: '/usage/tunnels', ask: (context, actor) => listTunnels(context, actor, { limit: 20, offset: 0 }) },
  {
    name: '/usage/tunnels?limit=100&offset=1000',
    ask: (context, actor) => listTunnels(context, actor, { limit: 100, offset: 1000 }),
  },
  {
    name: '/usage/tunnels?state=active',
    ask: (context, actor) => listTunnels(context, actor, { limit: 100, offset: 0, state: 'active' }),
  },
  {
    name: '/usage/tunnels?state=closed&protocol=udp',
    ask: (context, actor) => listTunnels(context, actor, { limit: 100, offset: 0, state: 'closed', protocol: 'udp' }),
  },
  {
    name: '/usage/tunnels at the far end',
    // The query skips over all rows, so its cost is only printed.
    isDeep: true,
    ask: (context, actor, { rows }) => listTunnels(context, actor, { limit: 20, offset: Math.max(0, rows - 20) }),
  },
  { name: '/usage/tunnels/{id}', ask: (context, actor, { entry }) => findTunnel(context, actor, entry.id) },
  {
    name: '/usage/tunnels/{tunnel_id}',
    ask: (context, actor, { entry }) => findTunnel(context, actor, entry.tunnel_id),
  },
  { name: '/keys', ask: (context, actor) => listKeys(context, actor) },
];

export async function askAll({ db, pool }, userId) {
  const facts = await factsOf(pool, userId);
  const statements = recordStatements(pool);
  const costs = [];
  for (const { name, ask } of QUESTIONS) {
    statements.length = 0;
    await ask({ db, clock: systemClock }, { kind: 'user', userId }, facts);
    if (statements.length !== 1) throw new Error(`${name} asked ${statements.length} times`);
    costs.push({ name, ...(await explain(pool, statements[0])) });
  }
  return costs;
}

/** Records every SQL statement on a connection of the pool from now on. */
function recordStatements(pool) {
  const statements = [];
  pool.on('acquire', (client) => {
    const { query } = Object.getPrototypeOf(client);
    client.query = (sql, values, ...rest) => {
      if (typeof sql === 'string') statements.push({ sql, values });
      return query.call(client, sql, values, ...rest);
    };
  });
  return statements;
}

async function factsOf(pool, userId) {
  const one = async (text) => (await pool.query(text, [userId])).rows[0];
  const { rows } = await one('select count(*) as rows from tunnel_log where user_id = $1');
  return { rows, entry: await one('select id, tunnel_id from tunnel_log where user_id = $1 limit 1') };
}

async function explain(pool, { sql, values }) {
  const runs = [];
  for (let time = 0; time < TIMES; time += 1) {
    const { rows } = await pool.query(`explain (analyze, buffers, format json) ${sql}`, values);
    runs.push(rows[0]['QUERY PLAN'][0]);
  }
  runs.sort((a, b) => timeOf(a) - timeOf(b));
  const middle = runs[Math.floor(TIMES / 2)];
  const text = await pool.query(`explain (analyze, buffers) ${sql}`, values);
  return {
    ms: timeOf(middle),
    pages: middle.Plan['Shared Hit Blocks'] + middle.Plan['Shared Read Blocks'],
    scans: await largeScans(pool, middle.Plan),
    plan: text.rows.map((row) => row['QUERY PLAN']).join('\n'),
  };
}

async function largeScans(pool, plan) {
  const scanned = nodesOf(plan)
    .filter((node) => node['Node Type'].endsWith('Seq Scan'))
    .map((node) => node['Relation Name']);
  const large = 'select name from unnest($1::text[]) name where pg_relation_size(name::regclass) > $2';
  return (await pool.query(large, [scanned, SMALL_BYTES])).rows.map(({ name }) => name);
}

const timeOf = (run) => run['Planning Time'] + run['Execution Time'];

const nodesOf = (node) => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
