// The questions of the API, asked by its own services; each statement is then explained with the same values.
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { listKeys } from '../../../../apps/platform/src/services/keys/list-keys.ts';
import { chartUsage } from '../../../../apps/platform/src/services/usage/chart-usage.ts';
import { findTunnel } from '../../../../apps/platform/src/services/usage/find-tunnel.ts';
import { listTunnels } from '../../../../apps/platform/src/services/usage/list-tunnels.ts';
import { summarizeUsage } from '../../../../apps/platform/src/services/usage/summarize-usage.ts';
import { systemClock } from '../../../../packages/runtime/src/index.ts';

/** A handful of rows: PostgreSQL rightly reads it whole. */
const SMALL_TABLES = new Set(['plans']);
/** The middle of so many. */
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
    name: '/usage/tunnels at the far end',
    // Passes over everything: told, not judged.
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

export async function askAll({ pool }, userId) {
  const statements = [];
  const log = ({ level, query }) => level === 'query' && statements.push({ sql: query.sql, values: query.parameters });
  const db = new Kysely({ dialect: new PostgresDialect({ pool }), log });
  const facts = await factsOf(db, userId);
  const costs = [];
  for (const { name, ask } of QUESTIONS) {
    statements.length = 0;
    await ask({ db, clock: systemClock }, { kind: 'user', userId }, facts);
    if (statements.length !== 1) throw new Error(`${name} asked ${statements.length} times`);
    costs.push({ name, ...(await explain(pool, statements[0])) });
  }
  return costs;
}

async function factsOf(db, userId) {
  const one = async (text) => (await db.executeQuery(CompiledQuery.raw(text, [userId]))).rows[0];
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
    scans: nodesOf(middle.Plan)
      .filter((node) => node['Node Type'].endsWith('Seq Scan') && !SMALL_TABLES.has(node['Relation Name']))
      .map((node) => node['Relation Name']),
    plan: text.rows.map((row) => row['QUERY PLAN']).join('\n'),
  };
}

const timeOf = (run) => run['Planning Time'] + run['Execution Time'];

const nodesOf = (node) => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
